"""How the fields of a record are read, by their annotations: `mode: Annotated[int, within(0, 2)]`.

What stands behind the type is called with the cursor and the field's name: one of these, a method
of `Fields` such as `Fields.quoted`, or a function of the record's own family.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar, get_type_hints

from at.protocol.values import Fields, Record

R = TypeVar("R", bound=Record)


def within(low: int, high: int | None = None) -> Callable[[Fields, str], int]:
    """Return what reads an integer of `low`..`high`."""
    return lambda line, name: line.integer(name, low, high)


def optional(low: int, high: int) -> Callable[[Fields, str], int | None]:
    """Return what reads an integer of `low`..`high`, None where it is absent."""
    return lambda line, name: line.optional_integer(name, low, high)


def further(low: int, high: int) -> Callable[[Fields, str], int | None]:
    """Return what reads an integer of `low`..`high`, None where the line has ended."""
    return lambda line, name: line.further_integer(name, low, high)


def decimal(limit: float | None = None) -> Callable[[Fields, str], float]:
    """Return what reads a decimal number of -`limit`..`limit`."""
    return lambda line, name: line.decimal(name, limit)


def hexadecimal(digits: int) -> Callable[[Fields, str], str]:
    """Return what reads hex digits, at most this many."""
    return lambda line, name: line.hexadecimal(name, digits)


def optional_hexadecimal(digits: int) -> Callable[[Fields, str], str | None]:
    """Return what reads hex digits, None where they are absent or "" in quotes."""
    return lambda line, name: line.optional_hexadecimal(name, digits)


def bits(count: int) -> Callable[[Fields, str], str | None]:
    """Return what reads digits 0 or 1, None where they are absent or "" in quotes."""
    return lambda line, name: line.bits(name, count)


def listed(low: int, high: int) -> Callable[[Fields, str], tuple[int, ...]]:
    """Return what reads a list in parentheses of integers and ranges."""
    return lambda line, name: line.integers(name, low, high)


def record(kind: type[R]) -> Callable[[Fields], R]:
    """Return what reads a record of this kind, whose fields stand in the order of the line."""
    return lambda line: kind(*(read(line, name) for name, read in _readers(kind)))


@cache
def _readers(kind: type[Record]) -> tuple[tuple[str, Callable[[Fields, str], object]], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple((name, hints[name].__metadata__[0]) for name in kind.__struct_fields__)
