"""How typed bytes become a command line, in each of the three firmwares.

`take` eats from a buffer up to the end of one command, so nothing depends on how bytes are cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

AT_HOST_LIMIT = 4095
SERIAL_MODEM_LIMIT = 8192
SHELL_LIMIT = 8192

_BACKSPACE = (0x08, 0x7F)
_QUOTE = 0x22
# What the Serial Modem lets through; all else it answers ERROR itself.
_SERIAL_MODEM_SHAPE = re.compile(
    rb"AT(E0|E1|[+%#][A-Z0-9_]+(\?|=\?|=.*)?)?", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """One command line, without its terminator; None where it was too long or ill-shaped."""

    text: str | None


class LineReader:
    """Collects one command line at a time."""

    def __init__(self, dialect: str, terminator: bytes) -> None:
        self._dialect = dialect
        self._terminator = b"\r" if dialect == "shell" else terminator
        self._line = bytearray()
        self._quoted = False
        self._too_long = False

    def stuff(self, data: bytes) -> None:
        """Put bytes into the line as if they had been typed."""
        for byte in data:
            self._add(byte)

    def forget(self) -> None:
        """Drop the line in progress."""
        self._line.clear()
        self._quoted = self._too_long = False

    def take(self, buffer: bytearray) -> CommandLine | None:
        """Eat bytes of `buffer` up to the end of a command; None once the buffer is empty."""
        for place, byte in enumerate(buffer):
            if self._dialect == "shell" and byte == 0x0A:
                byte = 0x0D  # noqa: PLW2901 - the shell takes either as the end of a line
            if not self._ends(byte):
                self._add(byte)
                continue
            typed = self._finished()
            if typed is not None:
                del buffer[: place + 1]
                return typed
        buffer.clear()
        return None

    def _ends(self, byte: int) -> bool:
        if self._quoted or byte != self._terminator[-1]:
            return False
        return len(self._terminator) == 1 or self._line[-1:] == self._terminator[:1]

    def _add(self, byte: int) -> None:
        if byte in _BACKSPACE:
            if self._line and self._line.pop() == _QUOTE:
                self._quoted = not self._quoted
            return
        if self._dialect == "serial-modem" and len(self._line) < 2:
            self._seek_attention(byte)
            return
        limit = AT_HOST_LIMIT if self._dialect == "at-host" else SERIAL_MODEM_LIMIT
        if byte == _QUOTE and self._dialect != "shell":
            self._quoted = not self._quoted
        if len(self._line) >= limit:
            self._too_long = self._dialect != "at-host"  # the AT host drops the rest in silence
            return
        self._line.append(byte)

    def _seek_attention(self, byte: int) -> None:
        """Drop bytes until an A, then a T, have come."""
        if byte in b"Tt" and self._line:
            self._line.append(byte)
            return
        self._line.clear()
        if byte in b"Aa":
            self._line.append(byte)

    def _finished(self) -> CommandLine | None:
        line = bytes(self._line)
        if len(self._terminator) == 2:
            line = line[:-1]
        too_long = self._too_long
        self.forget()
        if self._dialect == "serial-modem":
            if len(line) < 2:
                return None
            if too_long or _SERIAL_MODEM_SHAPE.fullmatch(line) is None:
                return CommandLine(None)
        if self._dialect == "shell":
            return CommandLine(None if too_long else line.decode("latin-1"))
        if not any(0x21 <= byte <= 0x7E for byte in line):
            return None
        return CommandLine(line.decode("latin-1"))
