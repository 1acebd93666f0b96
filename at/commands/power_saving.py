"""Power saving: +CPSMS +CEDRXS +CEDRXP +CEDRXRDP (TS 27.007) %XMODEMSLEEP %XT3412 (Nordic's).

And the timers that they and +CEREG give as bits (TS 24.008: T3324, T3412).
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from at.protocol.command import Command, OkCommand, Parameters, at_command
from at.protocol.errors import UnsafeArgument
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import bits, further, record, within
from at.protocol.values import Fields, Record, read_rows

# A timer has 8 bits: a unit in the first three, a count in the last five. TS 24.008, 10.5.7.3 (GPRS
# timer: Active-Time and the legacy Periodic-TAU) and 10.5.7.4a (GPRS timer 3: Periodic-TAU-ext):
# the two tables differ; one must not stand in for the other. In the first, units without a meaning
# of their own count minutes. 111, the timer is off, is in neither.
_ACTIVE_UNIT_S = dict.fromkeys(range(0b111), 60) | {0b000: 2, 0b010: 360}
_TAU_EXT_UNIT_S = {
    0b000: 600,
    0b001: 3600,
    0b010: 36000,
    0b011: 2,
    0b100: 30,
    0b101: 60,
    0b110: 1152000,
}


def active_time_seconds(bits: str | None) -> int | None:
    """Return T3324 in seconds; None when it is absent or off (111)."""
    return _seconds(bits, _ACTIVE_UNIT_S)


def periodic_tau_ext_seconds(bits: str | None) -> int | None:
    """Return the extended T3412 in seconds; None when it is absent or off (111)."""
    return _seconds(bits, _TAU_EXT_UNIT_S)


def periodic_tau_seconds(bits: str | None) -> int | None:
    """Return the legacy T3412 of %XMONITOR in seconds; None when it is absent or off (111)."""
    return _seconds(bits, _ACTIVE_UNIT_S)


class HasGrantedTimers:
    """A record with the timers that a network granted has their seconds beside them."""

    __slots__ = ()
    active_time: str | None
    periodic_tau_ext: str | None

    @property
    def active_time_s(self) -> int | None:
        """T3324 in seconds."""
        return active_time_seconds(self.active_time)

    @property
    def periodic_tau_ext_s(self) -> int | None:
        """T3412 (extended) in seconds."""
        return periodic_tau_ext_seconds(self.periodic_tau_ext)


def _seconds(bits: str | None, units: dict[int, int]) -> int | None:
    if not bits:
        return None
    unit = units.get(int(bits[:3], 2))
    return None if unit is None else unit * int(bits[3:], 2)


_T3412_HIGH_MS = 35_712_000_000
_ACT_TYPES = frozenset({0, 4, 5, 6})


class PowerSavingMode(Record, frozen=True):
    """Answer of +CPSMS?: mode 0 off, 1 on; the requested timers are bits."""

    mode: Annotated[int, within(0, 2)]
    requested_periodic_rau: Annotated[str | None, bits(8)] = None
    requested_gprs_ready_timer: Annotated[str | None, bits(8)] = None
    requested_periodic_tau: Annotated[str | None, bits(8)] = None
    requested_active_time: Annotated[str | None, bits(8)] = None

    derived: ClassVar[tuple[str, ...]] = ("requested_periodic_tau_s", "requested_active_time_s")

    @property
    def requested_periodic_tau_s(self) -> int | None:
        """The extended T3412 that is asked for, in seconds."""
        return periodic_tau_ext_seconds(self.requested_periodic_tau)

    @property
    def requested_active_time_s(self) -> int | None:
        """The T3324 that is asked for, in seconds."""
        return active_time_seconds(self.requested_active_time)


def _act_type(fields: Fields, name: str) -> int:
    act_type = fields.integer(name)
    if act_type not in _ACT_TYPES:
        raise fields.fail(name, f"is {act_type}, not 0, 4, 5 or 6")
    return act_type


class EdrxSetting(Record, frozen=True):
    """eDRX of one access technology: act_type 4 LTE-M, 5 NB-IoT, 6 NB-IoT by satellite.

    The values are 4 bits each.
    """

    act_type: Annotated[int, _act_type]
    requested_edrx_value: Annotated[str | None, bits(4)] = None
    nw_provided_edrx_value: Annotated[str | None, bits(4)] = None
    paging_time_window: Annotated[str | None, bits(4)] = None


class EdrxSettings(Record, frozen=True):
    """Answer of +CEDRXS?."""

    settings: tuple[EdrxSetting, ...]


class EdrxNotice(Notice, frozen=True):
    """+CEDRXP (some firmware: +CEDRXS) as a notice."""

    value: EdrxSetting


class Sleep(Record, frozen=True):
    """%XMODEMSLEEP: 1 PSM, 2 RF inactivity, 3 limited service, 4 flight mode, 7 proprietary PSM.

    `time_ms` > 0 while the modem goes to sleep, 0 when it wakes, None when it is not told.
    """

    type: Annotated[int, within(1, 7)]
    time_ms: Annotated[int | None, further(0, 2**63)] = None


class SleepNotice(Notice, frozen=True):
    """%XMODEMSLEEP as a notice."""

    value: Sleep


class NextUpdate(Record, frozen=True):
    """%XT3412: the time to the next tracking area update."""

    time_ms: Annotated[int, within(0, _T3412_HIGH_MS)]


class NextUpdateNotice(Notice, frozen=True):
    """%XT3412 as a notice."""

    value: NextUpdate


@at_command("AT+CPSMS?")
class ReadPowerSavingMode(Command[PowerSavingMode], frozen=True):
    """AT+CPSMS?."""

    def read(self, fields: Fields) -> PowerSavingMode:
        """Return mode and timers."""
        if fields.left not in {1, 5}:
            raise fields.fail("the line", f"has {fields.left} fields, not 1 or 5")
        return record(PowerSavingMode)(fields)


@at_command("AT+CPSMS=")
class SetPowerSavingMode(OkCommand, frozen=True):
    """AT+CPSMS=<mode>[,,,<Requested_Periodic-TAU>[,<Requested_Active-Time>]]: 0 off, 1 on.

    The timers are eight bits each; without them the modem's own count.
    """

    mode: int = 1
    requested_periodic_tau: str | None = None
    requested_active_time: str | None = None

    def parameters(self) -> Parameters:
        """Return mode and timers; the two of GPRS stay empty."""
        timers = (self.requested_periodic_tau, self.requested_active_time)
        for timer in timers:
            _check_bits(timer, 8)
        return (self.mode, None, None, *timers)


@at_command("AT+CEDRXS=")
class SetEdrx(OkCommand, frozen=True):
    """AT+CEDRXS=<mode>[,<act_type>[,<value>]]: 0 off, 1 on, 2 on with notices, 3 off and reset."""

    mode: int = 2
    act_type: int | None = 4
    requested_edrx_value: str | None = None

    def parameters(self) -> Parameters:
        """Return mode, technology and value."""
        _check_bits(self.requested_edrx_value, 4)
        return self.mode, self.act_type, self.requested_edrx_value


@at_command("AT+CEDRXS?")
class ReadEdrx(Command[EdrxSettings], frozen=True):
    """AT+CEDRXS?."""

    def parse(self, lines: Sequence[str]) -> EdrxSettings:
        """Return a setting for each access technology."""
        return EdrxSettings(read_rows(lines, self.name, record(EdrxSetting)))


@at_command("AT+CEDRXRDP")
class ReadEdrxInUse(Command[EdrxSetting], frozen=True):
    """AT+CEDRXRDP: what the network gave for the cell in use; act_type 0 means no eDRX."""


def _check_bits(text: str | None, count: int) -> None:
    if text is not None and (len(text) != count or set(text) - {"0", "1"}):
        raise UnsafeArgument(f"{text!r} is not {count} bits")


register_readers(EdrxNotice, dict.fromkeys(("+CEDRXP", "+CEDRXS"), record(EdrxSetting)))
register_readers(SleepNotice, {"%XMODEMSLEEP": record(Sleep)})
register_readers(NextUpdateNotice, {"%XT3412": record(NextUpdate)})
