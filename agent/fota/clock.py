"""The time that an update waits by; tests pass their own."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol

from at.found_state import Clock


class AsyncClock(Clock, Protocol):
    """The time, also of day, and waits."""

    def now(self) -> datetime:
        """Return the time of day, aware."""


class LoopClock:
    """The event loop's own time."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """Return the time of day, aware."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
