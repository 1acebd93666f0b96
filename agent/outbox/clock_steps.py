"""Notices that this host's clock was set: by how far it ran away from the one that never is."""

from __future__ import annotations

import time

SMALLEST_S = 30.0
"""Less is drift, or a correction by the network."""


class ClockSteps:
    """Compares the wall clock with the monotonic one, both in seconds. Pure."""

    def __init__(self, wall_s: float, monotonic_s: float) -> None:
        self._offset_s = wall_s - monotonic_s

    def stepped(self, wall_s: float, monotonic_s: float) -> float:
        """Return by how much the clock was set since the last call, 0.0 if it was not."""
        step_s = wall_s - monotonic_s - self._offset_s
        if abs(step_s) <= SMALLEST_S:
            return 0.0
        self._offset_s += step_s
        return step_s


def since_boot() -> float:
    """Return seconds that nobody sets; those in which the host slept count where that is known."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)
