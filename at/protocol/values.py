"""The parameters of an answer or a notice, read as loosely as modems write them.

`Fields` is a cursor over one line. A line that breaks its grammar raises ParseError, and no part of
it is used: a caller never sees half a record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import ClassVar, NamedTuple, TypeVar

from msgspec import Struct

from at.protocol.errors import ParseError

T = TypeVar("T")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,12})?", re.ASCII)
_HEX = re.compile(r"[0-9A-Fa-f]+", re.ASCII)
_NAME = re.compile(r"[+%#*$^&!@][A-Za-z0-9_]+", re.ASCII)
_BARE = re.compile(r'[^,)("]*(?=[,)]|\Z)')
_QUOTED_OR_LISTED = re.compile('["()]')
_BLANKS = " \t"
_DEEPEST_LIST = 8


class Value(NamedTuple):
    """One parameter: `text` is None when it is absent; `items` is set for a list in parentheses."""

    text: str | None = None
    quoted: bool = False
    items: tuple[Value, ...] | None = None

    @property
    def absent(self) -> bool:
        """Whether nothing stands between the commas; "" in quotes is not absent."""
        return self.text is None and self.items is None


def split(text: str) -> tuple[Value, ...]:
    """Return the parameters of `text`, () if it is blank. Raises ParseError.

    Commas and parentheses in quotes do not separate. Nothing between commas is an absent parameter.
    """
    if not _QUOTED_OR_LISTED.search(text):  # numbers, as a rule: commas alone separate them
        parts = text.split(",") if text.strip(_BLANKS) else []
        return tuple([Value(part.strip(_BLANKS) or None) for part in parts])
    values, end = _values(text, 0, 0)
    if end != len(text):
        raise ParseError(f'a ")" at position {end + 1} closes nothing')
    return values


def name_before_colon(line: str) -> str:
    """Return "+CEREG" of "+CEREG: 1", "" for a line that has no such name before a colon."""
    match = _NAME.match(line)
    if match is None or not line[match.end() :].lstrip(_BLANKS).startswith(":"):
        return ""
    return match.group().upper()


def after_name(line: str, name: str) -> str:
    """Return the text after "NAME:". Raises ParseError if the line has another name."""
    if name_before_colon(line) != name:
        raise ParseError(f"a line does not start with {name}:")
    return line.partition(":")[2].strip(_BLANKS)


class Fields:
    """A cursor over the parameters of one line.

    Each reading method returns the next parameter, checked, and moves on. It raises ParseError with
    the line's and the parameter's name where the parameter is missing or of another kind.
    """

    def __init__(self, values: Sequence[Value], origin: str = "") -> None:
        self._values = values
        self._origin = origin
        self._at = 0

    @classmethod
    def of(cls, line: str, name: str) -> Fields:
        """Read the parameters of a line that must start with "NAME:". Raises ParseError."""
        try:
            return cls(split(after_name(line, name)), name)
        except ParseError as wrong:
            raise ParseError(f"{name}: {wrong}") from None

    @property
    def left(self) -> int:
        """The number of parameters that are not read yet."""
        return max(0, len(self._values) - self._at)

    def peek(self, ahead: int = 0) -> Value:
        """Return a parameter without moving on; past the end, an absent one."""
        index = self._at + ahead
        return self._values[index] if index < len(self._values) else Value()

    def next_value(self) -> Value:
        """Return the next parameter; past the end, an absent one."""
        at, values = self._at, self._values
        self._at = at + 1
        return values[at] if at < len(values) else Value()

    def fail(self, name: str, why: str) -> ParseError:
        """Return the error that names this line and parameter `name`."""
        where = f"{self._origin}: " if self._origin else ""
        return ParseError(f"{where}{name} {why}")

    def integer(self, name: str, low: int | None = None, high: int | None = None) -> int:
        """Return an integer of `low`..`high`."""
        return self.present(name, self.optional_integer(name, low, high))

    def optional_integer(
        self, name: str, low: int | None = None, high: int | None = None
    ) -> int | None:
        """Return an integer of `low`..`high`, None where it is absent."""
        value = self.next_value()
        if value.absent:
            return None
        if value.text is None or value.quoted or not _INTEGER.fullmatch(value.text):
            raise self.fail(name, "is not an integer")
        number = int(value.text)
        if (low is not None and number < low) or (high is not None and number > high):
            raise self.fail(name, f"is {number}, not in {low}..{high}")
        return number

    def further_integer(self, name: str, low: int, high: int) -> int | None:
        """Return an integer of `low`..`high`, None where the line has ended.

        A comma without a number is refused: the line was cut.
        """
        return self.integer(name, low, high) if self.left else None

    def text(self, name: str) -> str:
        """Return a text, in quotes or bare."""
        return self.present(name, self.optional_text(name))

    def optional_text(self, name: str) -> str | None:
        """Return a text, in quotes or bare, None where it is absent."""
        value = self.next_value()
        if value.items is not None:
            raise self.fail(name, "is a list")
        return value.text

    def quoted(self, name: str) -> str:
        """Return a text that must be in quotes."""
        return self.present(name, self.optional_quoted(name))

    def optional_quoted(self, name: str) -> str | None:
        """Return a text that must be in quotes, None where it is absent."""
        value = self.next_value()
        if value.absent:
            return None
        if not value.quoted:
            raise self.fail(name, "is not in quotes")
        return value.text

    def hexadecimal(self, name: str, digits: int | None = None) -> str:
        """Return hex digits as text, in quotes or bare, at most `digits` of them."""
        return self.present(name, self.optional_hexadecimal(name, digits))

    def optional_hexadecimal(self, name: str, digits: int | None = None) -> str | None:
        """Return hex digits as `hexadecimal` does, None where they are absent or "" in quotes."""
        text = self.optional_text(name)
        if not text:
            return None
        if not _HEX.fullmatch(text) or (digits is not None and len(text) > digits):
            size = f" of up to {digits} digits" if digits is not None else ""
            raise self.fail(name, f"is not hex{size}")
        return text

    def decimal(self, name: str, limit: float | None = None) -> float:
        """Return a decimal number of -`limit`..`limit`."""
        text = self.text(name)
        if not _DECIMAL.fullmatch(text):
            raise self.fail(name, "is no number")
        number = float(text)
        if limit is not None and abs(number) > limit:
            raise self.fail(name, f"is {text}, beyond {limit:g}")
        return number

    def bits(self, name: str, count: int) -> str | None:
        """Return a text of `count` digits 0 or 1, None where it is absent or "" in quotes."""
        text = self.optional_text(name)
        if not text:
            return None
        if len(text) != count or set(text) - {"0", "1"}:
            raise self.fail(name, f"is not {count} bits")
        return text

    def integers(self, name: str, low: int, high: int) -> tuple[int, ...]:
        """Return a list in parentheses of integers and ranges, such as (0-3) or (1,2,5).

        All are of `low`..`high`.
        """
        value = self.next_value()
        if value.items is None:
            raise self.fail(name, "is not a list")
        numbers: list[int] = []
        for item in value.items:
            if item.absent:
                continue
            match = re.fullmatch(r"([0-9]{1,6})(?:\s*-\s*([0-9]{1,6}))?", item.text or "", re.ASCII)
            if match is None or item.quoted:
                raise self.fail(name, "is not a list of integers")
            first = int(match[1])
            last = int(match[2] or match[1])
            if not low <= first <= last <= high:
                raise self.fail(name, f"holds {item.text}, which is no range within {low}..{high}")
            numbers += range(first, last + 1)
        return tuple(numbers)

    def end(self) -> None:
        """Check that nothing but empty parameters is left: a trailing comma makes one."""
        while self.left:
            if not self.next_value().absent:
                raise self.fail(f"parameter {self._at}", "is one too many")

    def present(self, name: str, value: T | None) -> T:
        """Return what was read of a parameter, which must be there."""
        if value is None:
            raise self.fail(name, "is missing")
        return value


def single_line(lines: Sequence[str], name: str) -> str:
    """Return the only line of an answer. Raises ParseError when there is none or more."""
    filled = [line for line in lines if line.strip()]
    if len(filled) != 1:
        raise ParseError(f"{name}: {len(filled)} lines where one must stand")
    return filled[0]


def named_text(lines: Sequence[str], name: str) -> str:
    """Return what stands behind "NAME:" in the only line of an answer. Raises ParseError."""
    return after_name(single_line(lines, name), name)


def bare_line(lines: Sequence[str], name: str) -> str:
    """Return the only line of an answer that has no name before it ("mfw_nrf9160_1.3.7").

    Vendors that do write the name, or quotes, are understood. A line of another name is a notice
    that came between, and never a value. Raises ParseError.
    """
    line = single_line(lines, name).strip()
    other = name_before_colon(line)
    if other == name:
        line = after_name(line, name)
    elif other:
        raise ParseError(f"{name}: the answer is a {other} line")
    return plain_text(line, name)


def plain_text(text: str, name: str) -> str:
    """Return a text without quotes around it. Raises ParseError where it is empty or has others."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not text or '"' in text:
        raise ParseError(f"{name}: the answer is not a plain text")
    return text


def hex_digits(text: str) -> bool:
    """Return whether `text` is hex digits and nothing else."""
    return _HEX.fullmatch(text) is not None


def _values(text: str, at: int, depth: int) -> tuple[tuple[Value, ...], int]:
    """Return the parameters from `at` on, and the position of the ")" or end that follows."""
    values: list[Value] = []
    size = len(text)
    at = _skip_blanks(text, at)
    if at == size or text[at] == ")":
        return (), at
    while True:
        value, at = _value(text, at, depth)
        values.append(value)
        if at == size or text[at] == ")":
            return tuple(values), at
        at = _skip_blanks(text, at + 1)  # behind the comma


def _value(text: str, at: int, depth: int) -> tuple[Value, int]:
    """Return one parameter, and the position of the ",", ")" or end that follows."""
    size = len(text)
    if at == size or text[at] in ",)":
        return Value(), at
    if text[at] == '"':
        close = text.find('"', at + 1)
        if close < 0:
            raise ParseError(f"the quote at position {at + 1} is never closed")
        value, at = Value(text[at + 1 : close], quoted=True), close + 1
    elif text[at] == "(":
        if depth == _DEEPEST_LIST:
            raise ParseError("the lists are nested too deep")
        items, at = _values(text, at + 1, depth + 1)
        if at == size:
            raise ParseError('a "(" is never closed')
        value, at = Value(items=items), at + 1
    else:
        bare = _BARE.match(text, at)
        if bare is None:
            raise ParseError(f"a bare value at position {at + 1} holds a quote or a parenthesis")
        return Value(bare.group().rstrip(_BLANKS)), bare.end()
    at = _skip_blanks(text, at)
    if at < size and text[at] not in ",)":
        raise ParseError(f"something follows a closed value at position {at + 1}")
    return value, at


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def read_row(line: str, name: str, read: Callable[[Fields], T]) -> T:
    """Return what `read` reads of all of a line, which starts with "NAME:". Raises ParseError."""
    row = Fields.of(line, name)
    value = read(row)
    row.end()
    return value


def read_rows(lines: Iterable[str], name: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
    """Return what `read` reads of each line, as `read_row` does."""
    return read_lines(lines, lambda line: read_row(line, name, read))


def read_lines(lines: Iterable[str], read: Callable[[str], T]) -> tuple[T, ...]:
    """Return what `read` reads of each line that says something."""
    return tuple([read(line) for line in lines if line.strip()])


class Record(Struct, frozen=True):
    """A value read from a modem. Fields hold raw codes; JSON also shows the `derived` properties.

    So `rsrp` stays the modem's index, and JSON has `rsrp_dbm` beside it.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[frozenset[str]] = frozenset()
    """Fields that JSON does not show: the bytes that a signature covers."""

    @classmethod
    def shown(cls) -> tuple[str, ...]:
        """Return the names of the fields that are not hidden."""
        return tuple(name for name in cls.__struct_fields__ if name not in cls.hidden)

    def extra_json(self) -> dict[str, object]:
        """Return the members that JSON has besides the fields."""
        return {name: getattr(self, name) for name in self.derived}

    def to_json(self) -> dict[str, object]:
        """Return the fields and what is derived from them as plain JSON types."""
        shown = {name: getattr(self, name) for name in self.shown()} | self.extra_json()
        return {name: as_json(value) for name, value in shown.items()}


class PartlyHidden(Record, frozen=True):
    """A record that is told from another, and shown, by the fields that are not hidden."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shown())
        return f"{type(self).__name__}({told})"

    def _compared(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.shown())


def as_json(value: object) -> object:
    """Return a value as plain JSON types: a record is a dict, bytes are hex, a time is ISO 8601."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    return value
