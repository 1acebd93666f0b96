"""The three firmwares that stand between the line and the modem, and what each waits for."""

from __future__ import annotations

import re
from enum import Enum


class Dialect(Enum):
    """Who takes the command line: facts of the SDK's AT host, of Serial Modem and of the shell."""

    AT_HOST = "at-host"
    SERIAL_MODEM = "serial-modem"
    SHELL = "shell"


class Terminator(Enum):
    """What ends a command line; the value is the name that people use."""

    CR = "cr"
    LF = "lf"
    CRLF = "crlf"
    NUL = "null"

    @property
    def wire(self) -> bytes:
        """The bytes."""
        return _WIRE[self]


_WIRE = {
    Terminator.CR: b"\r",
    Terminator.LF: b"\n",
    Terminator.CRLF: b"\r\n",
    Terminator.NUL: b"\x00",
}
LONGEST_COMMAND = {
    # The AT host's buffer has 4096 bytes with its NUL, and drops what is beyond in silence.
    Dialect.AT_HOST: 4095,
    Dialect.SERIAL_MODEM: 8192,
    Dialect.SHELL: 4095,
}

_BLANK_BEFORE_FINAL = re.compile(rb"(?:^|[\r\n])\r\n(?:OK|ERROR|\+CME ERROR:[^\r\n]*)\r\n")
_SHELL = re.compile(rb"[\w.-]+:~\$ |: command not found|: wrong parameter count")


def typed(dialect: Dialect, command: str) -> str:
    """Return a command line as this dialect takes it: wrapped for the shell, else as it is."""
    if dialect is not Dialect.SHELL:
        return command
    # The shell takes one line: line ends inside the quotes travel as the two characters \n.
    inner = command.replace("\r", "").replace("\n", "\\n")
    return f"at '{inner}'"


def recognised(reply: bytes | bytearray) -> Dialect:
    """Tell who answered from the raw bytes of a whole reply.

    Serial Modem puts an empty line before the final result, the AT host never does; the shell
    prints its prompt, or does not know the command.
    """
    if _SHELL.search(reply):
        return Dialect.SHELL
    return Dialect.SERIAL_MODEM if _BLANK_BEFORE_FINAL.search(reply) else Dialect.AT_HOST
