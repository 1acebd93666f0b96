"""The clock of the stand-in: it runs with the machine's, and tests move it."""

import time
from datetime import UTC, datetime

EARLIEST_S = 315_964_800
"""The epoch of GPS: nothing before it has a GPS time."""
LATEST_S = 4_102_444_800
"""2100-01-01T00:00:00Z."""


class Clock:
    """Seconds since 1970, UTC. All trials, grace periods and delays use this clock."""

    def __init__(self) -> None:
        self._offset_s = 0.0
        self._frozen_at: float | None = None

    def time(self) -> float:
        """Return the time as Unix seconds."""
        return time.time() + self._offset_s if self._frozen_at is None else self._frozen_at

    def now(self) -> datetime:
        """Return the time as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.time(), UTC)

    def iso(self) -> str:
        """Return the time as the device cloud writes it: ISO 8601, milliseconds, `Z`."""
        return iso(self.time())

    def advance(self, seconds: float) -> None:
        """Move forward; negative moves back. Raises ValueError beyond EARLIEST_S or LATEST_S."""
        if not EARLIEST_S <= self.time() + seconds <= LATEST_S:
            raise ValueError("this clock knows the years 1980 to 2099")
        if self._frozen_at is None:
            self._offset_s += seconds
        else:
            self._frozen_at += seconds

    def set(self, unix_s: float) -> None:
        """Jump to a time, and run on from there unless frozen."""
        self.advance(unix_s - self.time())

    def freeze(self, *, still: bool = True) -> None:
        """Stop the clock until it is moved, or let it run on from there."""
        now = self.time()
        self._frozen_at = now if still else None
        self._offset_s = now - time.time()


def iso(unix_s: float) -> str:
    """Return Unix seconds as ISO 8601 UTC with milliseconds and `Z` (clause D2.3)."""
    whole = datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
    return whole.removesuffix("+00:00") + "Z"
