"""The firmwares between the line and the modem, and how each takes and prints lines.

A dialect is declared here and nowhere else: its name in `Dialect` and `DialectName`, its facts in
`TRAITS`. The facts are those of the SDK's AT host, of Serial Modem, of the nRF93M1 module, which
takes its commands itself, and of Zephyr's shell with either command for AT.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Literal

from at.protocol.state_machine import IdentityEnum


class Dialect(Enum):
    """Which firmware takes the command line."""

    AT_HOST = "at-host"
    SERIAL_MODEM = "serial-modem"
    NRF93M1 = "nrf93m1"
    SHELL = "shell"
    MODEM_SHELL = "modem-shell"

    @cached_property
    def traits(self) -> Traits:
        """The traits of this dialect."""
        return TRAITS[self]

    def typed(self, command: str) -> str:
        """Return a command line as this dialect takes it."""
        wrapper = self.traits.wrapper
        if not wrapper:
            return command
        # A wrapped line is one line: ends within the quotes travel as the two characters \n.
        return wrapper.format(command.replace("\r", "").replace("\n", "\\n"))


DialectName = Literal["auto", "at-host", "serial-modem", "nrf93m1", "shell", "modem-shell"]
"""The names that an option may have; "auto" detects it."""


@dataclass(frozen=True, slots=True)
class Traits:
    """How a firmware takes command lines, and what it prints."""

    longest_command: int
    """Bytes of a command line, without its terminator."""
    mark: re.Pattern[bytes] | None = None
    """Proves this dialect in the raw bytes of a whole reply; None where only a question tells."""
    wrapper: str = ""
    """What a command is typed as, with {} for the command; "" for the command itself.

    A dialect with a wrapper reads lines: the end of one ends an open quote, too, and it has no
    data mode. What is not wrapped, it answers in its own words."""
    drops_input_while_busy: bool = False
    """Whether bytes that arrive while a command runs are lost; else they wait."""
    blank_lines: bool = False
    """Whether an empty line stands before the body and before the final result."""
    echo: re.Pattern[str] | None = None
    """A wrapped command as it is echoed; group 2 is the command."""
    prompt: bytes = b""
    """The pattern of the prompt that it prints before each command."""
    prompt_ends: tuple[bytes, ...] = ()
    """How that prompt ends on the line, with and without colours."""
    start_lines: frozenset[str] = frozenset()
    """The lines that it prints once it has started."""
    is_module: bool = False
    """Whether the modem behind it is an nRF93M1, which has commands of its own."""


TRAITS = {
    Dialect.AT_HOST: Traits(
        # Its buffer has 4096 bytes with its NUL; what is beyond is dropped in silence.
        longest_command=4095,
        drops_input_while_busy=True,
    ),
    Dialect.SERIAL_MODEM: Traits(
        longest_command=8189,  # with its end 8190 from 2.0 on, 8192 before
        mark=re.compile(rb"(?:^|[\r\n])\r\n(?:OK|ERROR|\+CME ERROR:[^\r\n]*)\r\n"),
        blank_lines=True,
        start_lines=frozenset({"Ready", "ready", "INIT ERROR", "Bootloader mode ready"}),
    ),
    Dialect.NRF93M1: Traits(
        # Its replies look like Serial Modem's: the answer to AT+CGMM tells the two apart.
        longest_command=4095,
        blank_lines=True,
        # Behind either, nothing that the host has set holds any more.
        start_lines=frozenset({"RDY", "POWERED DOWN"}),
        is_module=True,
    ),
    Dialect.SHELL: Traits(
        longest_command=4095,
        mark=re.compile(rb"[\w.-]:~\$ |: command not found|: wrong parameter count"),
        wrapper="at '{}'",
        echo=re.compile(r"at\s+('?)([Aa][Tt](?:[+%#*^$&!].*)?)\1", re.DOTALL),
        prompt=rb"[A-Za-z][\w.-]{0,20}:~\$ ?",
        prompt_ends=(b"$ ", b"$ \x1b[m"),
    ),
    Dialect.MODEM_SHELL: Traits(
        # Of the nRF93M1 kit's own host program: the shell as above, with another command for AT.
        longest_command=256,
        wrapper="modem at '{}'",
        is_module=True,
        echo=re.compile(r"modem\s+at\s+(['\"]?)([Aa][Tt](?:[+%#*^$&!].*)?)\1", re.DOTALL),
    ),
}
# For input whose dialect is not known yet.
START_LINES = frozenset[str]().union(*(traits.start_lines for traits in TRAITS.values()))
BOOT_BANNER = "*** Booting"
"""How the firmware of a board, whatever takes its commands, says that it starts."""
ECHO_LIMIT = 4096
"""Bytes after which Serial Modem cuts an echo; what is shorter is cut by accident."""
PROMPTS = re.compile(b"(?:%b)+" % b"|".join(t.prompt for t in TRAITS.values() if t.prompt))
LEAVE_DATA_MODE = b"+++"
CONTROL_SEQUENCE = r"\x1b\[[0-?]*[ -/]*[@-~]"
"""A colour, or a movement of the cursor, as a shell prints it (ECMA-48, 5.4)."""


def recognised(reply: bytes | bytearray) -> Dialect:
    """Return the dialect that `reply`, the raw bytes of a whole reply, shows."""
    for dialect in reversed(Dialect):  # a shell prints its prompt behind whatever it is asked
        mark = dialect.traits.mark
        if mark is not None and mark.search(reply):
            return dialect
    return Dialect.AT_HOST


def tells_start(line: str) -> bool:
    """Return whether a line says that the modem, or the firmware in front of it, has started."""
    return line in START_LINES or line.startswith(BOOT_BANNER)


def unwrapped(line: str) -> str | None:
    """Return the command whose wrapped echo `line` is; None where it is no such echo."""
    for traits in TRAITS.values():
        if traits.echo is not None and (echo := traits.echo.fullmatch(line)):
            return echo[2]
    return None


class Terminator(IdentityEnum):
    """The terminator of a command line; the value is its name in options."""

    CR = "cr"
    LF = "lf"
    CRLF = "crlf"
    NUL = "null"

    @property
    def wire(self) -> bytes:
        """The bytes on the line."""
        return _WIRE[self]


_WIRE = {
    Terminator.CR: b"\r",
    Terminator.LF: b"\n",
    Terminator.CRLF: b"\r\n",
    Terminator.NUL: b"\x00",
}
TerminatorName = Literal["auto", "cr", "lf", "crlf", "null"]
"""The names that an option may have; "auto" detects it."""
