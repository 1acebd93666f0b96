"""Satellite navigation on the Serial Modem: #XGNSS #XGNSSPOS, and #XGPS, their older name.

Serial Modem 1 prints states and positions under one name, 2.0 positions as #XGNSSPOS.
"""

from typing import Annotated

from at.commands.serial_modem.application import SerialModemNotice
from at.protocol.command import Command, at_command
from at.protocol.notices import register_readers
from at.protocol.record_fields import decimal, record, within
from at.protocol.values import Fields, Record


class GnssPosition(Record, frozen=True):
    """#XGNSSPOS: degrees, metres, metres a second; `datetime` is UTC as text."""

    lat: Annotated[float, decimal(90)]
    lon: Annotated[float, decimal(180)]
    alt: Annotated[float, decimal()]
    acc: Annotated[float, decimal()]
    speed: Annotated[float, decimal()]
    heading: Annotated[float, decimal()]
    datetime: Annotated[str, Fields.quoted]


class GnssState(Record, frozen=True):
    """#XGNSS: state 0 stopped, 1 started, 2 wake-up, 3 sleep on time-out, 4 sleep on a fix."""

    service: Annotated[int, within(0, 9)]
    state: Annotated[int, within(0, 4)]


@at_command("AT#XGNSS?")
class ReadGnssState(Command[GnssState], frozen=True):
    """AT#XGNSS?."""


@at_command("AT#XGPS?")
class ReadOldGnssState(ReadGnssState, frozen=True):
    """AT#XGPS?, the name before the firmware was renamed."""


_position, _state = record(GnssPosition), record(GnssState)


def _either(fields: Fields) -> GnssPosition | GnssState:
    """Read a name of both: a state or a position."""
    return _state(fields) if fields.left <= 2 else _position(fields)


register_readers(SerialModemNotice, {"#XGNSSPOS": _position, "#XGNSS": _either, "#XGPS": _either})
