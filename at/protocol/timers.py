"""The timers of power saving: 8 bits each, a unit in the first three, a count in the last five.

Sources: TS 24.008, 10.5.7.3 (GPRS timer: Active-Time and the legacy Periodic-TAU) and 10.5.7.4a
(GPRS timer 3: Periodic-TAU-ext). The two tables differ; one must not stand in for the other.
"""

from __future__ import annotations

_ACTIVE_UNIT_S = {0b000: 2, 0b001: 60, 0b010: 360}
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
    """Return T3324 in seconds; None when it is absent, off (111) or of an unknown unit."""
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
