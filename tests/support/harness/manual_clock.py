"""A clock that the test moves; waiting on it takes no time."""

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.time

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.time)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)
