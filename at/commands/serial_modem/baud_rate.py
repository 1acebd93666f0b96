"""The speed of the serial port: +IPR (V.250 clause 6.2.10), as the Serial Modem has it."""

from typing import Annotated

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.record_fields import within
from at.protocol.values import Fields, Record

_HIGHEST = 10_000_000


class BaudRate(Record, frozen=True):
    """Answer of +IPR?: bits a second."""

    rate: Annotated[int, within(0, _HIGHEST)]


class BaudRates(Record, frozen=True):
    """Answer of +IPR=?: the rates that are detected, and those that must be set."""

    autodetected: tuple[int, ...]
    rates: tuple[int, ...]


@at_command("AT+IPR?")
class ReadBaudRate(Command[BaudRate], frozen=True):
    """AT+IPR?."""


@at_command("AT+IPR=?")
class ReadBaudRates(Command[BaudRates], frozen=True):
    """AT+IPR=?."""

    def read(self, fields: Fields) -> BaudRates:
        """Return both lists; the second may be missing."""
        detected = _rates(fields)
        return BaudRates(detected, _rates(fields) if fields.left else ())


@at_command("AT+IPR=")
class SetBaudRate(OkCommand, frozen=True):
    """AT+IPR=<rate>: in effect after the OK, which still comes at the old rate."""

    rate: int


def _rates(fields: Fields) -> tuple[int, ...]:
    listed = fields.next_value().items
    if listed is None:
        raise fields.fail("rates", "is not a list")
    items = Fields(listed, "+IPR")
    return tuple(items.integer("rate", 0, _HIGHEST) for _ in listed)
