"""Satellite navigation on the Serial Modem: #XGNSS #XGNSSPOS, and #XGPS, their older name.

Serial Modem 1 prints states and positions under one name, 2.0 positions as #XGNSSPOS.
"""

from dataclasses import dataclass

from at.commands.serial_modem import SerialModemNotice
from at.protocol.command import Command, at_command
from at.protocol.notices import register_readers
from at.protocol.values import Fields, Record


@dataclass(frozen=True, slots=True)
class GnssPosition(Record):
    """#XGNSSPOS: degrees, metres, metres a second; `datetime` is UTC as text."""

    lat: float
    lon: float
    alt: float
    acc: float
    speed: float
    heading: float
    datetime: str


@dataclass(frozen=True, slots=True)
class GnssState(Record):
    """#XGNSS: state 0 stopped, 1 started, 2 wake-up, 3 sleep on time-out, 4 sleep on a fix."""

    service: int
    state: int


@at_command("AT#XGNSS?")
class ReadGnssState(Command[GnssState]):
    """AT#XGNSS?."""

    def read(self, fields: Fields) -> GnssState:
        """Return the state."""
        return _state(fields)


@at_command("AT#XGPS?")
class ReadOldGnssState(ReadGnssState):
    """AT#XGPS?, the name before the firmware was renamed."""


def _position(fields: Fields) -> GnssPosition:
    return GnssPosition(
        fields.decimal("lat", 90),
        fields.decimal("lon", 180),
        fields.decimal("alt"),
        fields.decimal("acc"),
        fields.decimal("speed"),
        fields.decimal("heading"),
        fields.quoted("datetime"),
    )


def _state(fields: Fields) -> GnssState:
    return GnssState(fields.integer("service", 0, 9), fields.integer("state", 0, 4))


def _either(fields: Fields) -> GnssPosition | GnssState:
    """Read a name of both: a state or a position."""
    return _state(fields) if fields.left <= 2 else _position(fields)


register_readers(SerialModemNotice, {"#XGNSSPOS": _position, "#XGNSS": _either, "#XGPS": _either})
