"""One command line as the modem reads it. Its own reader: the driver's would hide its mistakes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_LINE = re.compile(r"AT(?:([+%#][A-Z0-9_]+)(=\?|\?|=)?(.*))?", re.DOTALL | re.IGNORECASE)


class RequestForm(Enum):
    """How the command is asked."""

    RUN = ""
    READ = "?"
    TEST = "=?"
    SET = "="


class Bare(str):
    """A parameter without quotes that is no number."""

    __slots__ = ()


Parameter = int | str | None


class BadRequest(Exception):
    """The modem answers ERROR, or +CME ERROR with `code`."""

    def __init__(self, code: int | None = None) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command. `name` is "+CFUN", "" for AT alone; text is latin-1, so bytes stay what they are.

    A parameter is an int, a quoted text, a `Bare` word, or None where it was left empty.
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
        value = self.parameters[index] if index < len(self.parameters) else None
        if value is None:
            value = default
        if not isinstance(value, int) or not low <= value <= high:
            raise BadRequest(code)
        return value

    def text(self, index: int, default: str | None = None, *, code: int | None = None) -> str:
        """Return a quoted parameter. Raises BadRequest."""
        value = self.parameters[index] if index < len(self.parameters) else None
        if value is None:
            value = default
        if not isinstance(value, str) or isinstance(value, Bare):
            raise BadRequest(code)
        return value

    def given(self, index: int) -> bool:
        """Tell whether a parameter is there and not empty."""
        return index < len(self.parameters) and self.parameters[index] is not None


def parse_request(line: str) -> CommandRequest:
    """Read a command line without its terminator. Raises BadRequest."""
    matched = _LINE.fullmatch(line.strip(" \r\n"))
    if matched is None:
        raise BadRequest
    name, sign, rest = matched.group(1) or "", matched.group(2) or "", matched.group(3) or ""
    if sign != "=" and rest.strip():
        raise BadRequest
    parameters = tuple(_parameters(rest)) if sign == "=" else ()
    return CommandRequest(name.upper(), RequestForm(sign), parameters)


def _parameters(text: str) -> list[Parameter]:
    """Split at the commas outside quotes."""
    pieces, start, quoted = [], 0, False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif letter == "," and not quoted:
            pieces.append(text[start:place])
            start = place + 1
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
