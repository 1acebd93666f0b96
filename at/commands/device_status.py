"""The modem's own state: %XVBAT %XVBATLOWLVL %XTEMP, and the notices %XPOFWARN %MDMEV %RAI.

Source: Nordic's AT reference.
"""

import re
from functools import partial
from typing import Annotated, ClassVar

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register, register_readers
from at.protocol.record_fields import optional, record, within
from at.protocol.values import Fields, Record, after_name

_DEGREES = within(-100, 300)


class Supply(Record, frozen=True):
    """Answer of %XVBAT."""

    vbat_mv: Annotated[int, within(0, 100000)]


class Temperature(Record, frozen=True):
    """Answer of %XTEMP?."""

    temperature_c: Annotated[int, _DEGREES]


class TemperatureLevel(Record, frozen=True):
    """%XTEMP as a notice: level 1 normal, 2 high, 3 critical, which switches the radio off."""

    level: Annotated[int, within(1, 3)]
    temperature_c: Annotated[int, _DEGREES]


class TemperatureNotice(Notice, frozen=True):
    """%XTEMP as a notice."""

    value: TemperatureLevel


class LowSupply(Record, frozen=True):
    """%XVBATLOWLVL: as a notice the supply now, which is below the level; 0 where it is not known.

    As an answer the level.
    """

    supply_mv: int


class LowSupplyNotice(Notice, frozen=True):
    """%XVBATLOWLVL as a notice."""

    value: LowSupply


class PowerOffWarning(Record, frozen=True):
    """%XPOFWARN: the modem went offline, for its supply fell below 3.0 to 3.3 V (30 to 33)."""

    voltage: Annotated[int | None, optional(30, 33)] = None

    derived: ClassVar[tuple[str, ...]] = ("level_mv",)

    @property
    def level_mv(self) -> int | None:
        """The level in millivolts."""
        return None if self.voltage is None else 100 * self.voltage


class PowerOffNotice(Notice, frozen=True):
    """%XPOFWARN as a notice."""

    value: PowerOffWarning


class ModemEvent(Record, frozen=True):
    """%MDMEV: "ME OVERHEATED", "SEARCH STATUS 2", "PRACH CE-LEVEL 0" ...; others may come."""

    text: str


class ModemEventNotice(Notice, frozen=True):
    """%MDMEV as a notice."""

    value: ModemEvent


class ReleaseAssistance(Record, frozen=True):
    """%RAI: the fields as they stand; the manual's form differs between firmwares."""

    values: tuple[int | str | None, ...]


class ReleaseAssistanceNotice(Notice, frozen=True):
    """%RAI as a notice."""

    value: ReleaseAssistance


@at_command("AT%XVBAT")
class ReadSupply(Command[Supply], frozen=True):
    """AT%XVBAT: in millivolts."""


@at_command("AT%XTEMP?")
class ReadTemperature(Command[Temperature], frozen=True):
    """AT%XTEMP?: the form without "?" is no reading."""


@at_command("AT%XVBATLOWLVL?")
class ReadLowSupplyLevel(Command[LowSupply], frozen=True):
    """AT%XVBATLOWLVL?."""

    def read(self, fields: Fields) -> LowSupply:
        """Return the level below which %XVBATLVL warns."""
        return _low_supply(fields, 3100)


@at_command("AT%MDMEV=")
class SetModemEvents(OkCommand, frozen=True):
    """AT%MDMEV=<n>: 2 with coverage levels, 1 on older firmware, 0 off."""

    n: int = 2


def _low_supply(fields: Fields, lowest: int) -> LowSupply:
    answer = LowSupply(fields.integer("supply", 0, 5000))
    if answer.supply_mv < lowest and (answer.supply_mv or lowest > 3000):
        raise ParseError(f"%XVBATLOWLVL: {answer.supply_mv} is below {lowest} mV")
    return answer


def _event(line: str, _context: str | None) -> ModemEventNotice:
    text = after_name(line, "%MDMEV")
    if not re.fullmatch(r"[\x20-\x7e]{1,200}", text, re.ASCII):
        raise ParseError("%MDMEV: the event has no text")
    return ModemEventNotice("%MDMEV", line, ModemEvent(text))


def _release(fields: Fields) -> ReleaseAssistance:
    values: list[int | str | None] = []
    while fields.left:
        value = fields.peek()
        bare_number = value.text is not None and not value.quoted and value.text.isdecimal()
        values.append(fields.integer("value") if bare_number else fields.optional_text("value"))
    if not values:
        raise fields.fail("the first value", "is missing")
    return ReleaseAssistance(tuple(values))


register_readers(TemperatureNotice, {"%XTEMP": record(TemperatureLevel)})
register_readers(LowSupplyNotice, {"%XVBATLOWLVL": partial(_low_supply, lowest=3000)})
register_readers(PowerOffNotice, {"%XPOFWARN": record(PowerOffWarning)})
register_readers(ReleaseAssistanceNotice, {"%RAI": _release})
register("%MDMEV", _event)
