"""Steps of the host's clock, of which timers on a monotonic clock know nothing. Pure."""

from __future__ import annotations

SMALLEST_STEP_S = 30.0
"""Less is drift, or a correction by the network."""


class ClockStepDetector:
    """Compares the wall clock with a monotonic one, both in seconds. Pure."""

    def __init__(self, wall_s: float, monotonic_s: float) -> None:
        self._offset_s = wall_s - monotonic_s

    def step(self, wall_s: float, monotonic_s: float) -> float:
        """Return by how many seconds the clock was set since the last call; 0.0 if it was not."""
        step_s = wall_s - monotonic_s - self._offset_s
        if abs(step_s) <= SMALLEST_STEP_S:
            return 0.0
        self._offset_s += step_s
        return step_s
