"""How typed bytes become a command: a line of each of the three firmwares, then its parameters.

`LineReader` takes bytes of a buffer up to the end of one command, so nothing depends on how they
were cut. The parser is the virtual modem's own: the driver's would hide the driver's mistakes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from at.virtual.kit import Reply, VirtualKit, ok

AT_HOST_LIMIT = 4095
SERIAL_MODEM_LIMIT = 8192

_BACKSPACE = (0x08, 0x7F)
_QUOTE = 0x22
# The lines that the Serial Modem passes on; it answers ERROR to all others itself.
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

    def type_ahead(self, data: bytes) -> None:
        """Add bytes to the line as if they had been received before."""
        for byte in data:
            self._add(byte)

    def reset(self) -> None:
        """Discard the line in progress."""
        self._line.clear()
        self._quoted = self._too_long = False

    def read_line(self, buffer: bytearray) -> CommandLine | None:
        """Remove bytes from `buffer` up to the end of a command; return None once it is empty."""
        for index, byte in enumerate(buffer):
            if self._dialect == "shell" and byte == 0x0A:
                byte = 0x0D  # noqa: PLW2901 - the shell takes either as the end of a line
            if not self._ends(byte):
                self._add(byte)
                continue
            typed = self._finished()
            if typed is not None:
                del buffer[: index + 1]
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
        self.reset()
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


_LINE = re.compile(r"AT(?:([+%#][A-Z0-9_]+)(=\?|\?|=)?(.*))?", re.DOTALL | re.IGNORECASE)


# Whose parameter is JSON, or any text, without quotes around it.
_OPAQUE = {"%NRFCLOUDMESSAGE", "%NRFCLOUDSHADOW"}


class RequestForm(Enum):
    """The syntax form of a command (3GPP TS 27.007 calls RUN the execution command)."""

    RUN = ""
    READ = "?"
    TEST = "=?"
    SET = "="


class Bare(str):
    """A parameter without quotes that is not a number."""

    __slots__ = ()


Parameter = int | str | None


class BadRequest(Exception):
    """The command is wrong: the modem replies ERROR, or +CME ERROR with `code`."""

    def __init__(self, code: int | None = None) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A parsed command. `name` is "+CFUN", "" for AT alone; text is latin-1, which keeps all bytes.

    A parameter is an int, a quoted text, a `Bare` word, or None where it is empty.
    """

    name: str
    form: RequestForm
    parameters: tuple[Parameter, ...] = ()

    def number(
        self,
        index: int,
        low: int,
        high: int,
        default: int | None = None,
        *,
        code: int | None = None,
    ) -> int:
        """Return an integer parameter within its range. Raises BadRequest."""
        value = self._value(index, default)
        if not isinstance(value, int) or not low <= value <= high:
            raise BadRequest(code)
        return value

    def text(self, index: int, default: str | None = None, *, code: int | None = None) -> str:
        """Return a quoted parameter. Raises BadRequest."""
        value = self._value(index, default)
        if not isinstance(value, str) or isinstance(value, Bare):
            raise BadRequest(code)
        return value

    def given(self, index: int) -> bool:
        """Return whether a parameter is present and not empty."""
        return self._value(index, None) is not None

    def _value(self, index: int, default: Parameter) -> Parameter:
        value = self.parameters[index] if index < len(self.parameters) else None
        return default if value is None else value


def parse_request(line: str) -> CommandRequest:
    """Parse a command line without its terminator. Raises BadRequest."""
    matched = _LINE.fullmatch(line.strip(" \r\n"))
    if matched is None:
        raise BadRequest
    name, sign, rest = matched.group(1) or "", matched.group(2) or "", matched.group(3) or ""
    if sign != "=" and rest.strip():
        raise BadRequest
    if sign == "=" and name.upper() in _OPAQUE:
        return CommandRequest(name.upper(), RequestForm.SET, (Bare(rest),))
    parameters = tuple(_parameters(rest)) if sign == "=" else ()
    return CommandRequest(name.upper(), RequestForm(sign), parameters)


def _parameters(text: str) -> list[Parameter]:
    """Split at the commas outside quotes."""
    pieces, start, quoted = [], 0, False
    for index, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif letter == "," and not quoted:
            pieces.append(text[start:index])
            start = index + 1
    if quoted:
        raise BadRequest
    return [_parameter(piece.strip(" ")) for piece in (*pieces, text[start:])]


def _parameter(piece: str) -> Parameter:
    if not piece:
        return None
    if piece[0] == '"':
        if len(piece) < 2 or piece[-1] != '"' or '"' in piece[1:-1]:
            raise BadRequest
        return piece[1:-1]
    if re.fullmatch(r"-?[0-9]{1,20}", piece, re.ASCII):
        return int(piece)
    if '"' in piece:
        raise BadRequest
    return Bare(piece)


Handler = Callable[[VirtualKit, CommandRequest], Reply]


def only(handler: Handler, *forms: RequestForm) -> Handler:
    """Return a handler that refuses all other forms of its command."""

    def handle(kit: VirtualKit, request: CommandRequest) -> Reply:
        if request.form not in forms:
            raise BadRequest
        return handler(kit, request)

    return handle


def shows(line: Callable[[VirtualKit], str]) -> Handler:
    """Return the handler of a command that takes no parameters and answers with a line."""
    return only(lambda kit, _: ok(line(kit)), RequestForm.RUN)


def tested(handler: Handler, parameters: str) -> Handler:
    """Return a handler that answers the test form of its command with these parameters."""

    def handle(kit: VirtualKit, request: CommandRequest) -> Reply:
        if request.form is RequestForm.TEST:
            return ok(f"{request.name}: {parameters}")
        return handler(kit, request)

    return handle
