"""A year of three kits in virtual time: what the status, its tasks and its log grow to."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import virtual_time
from measure import Row

from agent.daemon.snapshot import (
    ConsoleStatus,
    FotaStatus,
    LinkStatus,
    LocationStatus,
    OutboxStatus,
    Phase,
)
from agent.daemon.status import Concern, StatusRegistry
from agent.daemon.supervisor import supervise
from agent.errors import ServerTrouble, Unreachable
from agent.outbox import OutboxFull
from agent.tasks import cancel_and_wait
from at.protocol.errors import LinkLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

NAME = "year"
SEED = 20261122
KITS = ("left", "middle", "right")
DAY_S = 86400.0
RESETS, OUTAGES, UPDATES, FULL_DISKS, CLOCK_STEPS = 10_000, 500, 50, 12, 24
"""In a year, of all kits together."""


class Counter(logging.Handler):
    """Counts the lines of the log by day."""

    def __init__(self) -> None:
        super().__init__()
        self.days: dict[int, int] = {}
        self.succeeded = 0
        self.day = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.days[self.day] = self.days.get(self.day, 0) + 1
        self.succeeded += "SUCCEEDED" in record.getMessage()


class Year:
    """The concerns of three kits and what happens to them; `share` is how much of a year."""

    def __init__(self, share: float) -> None:
        self.length_s = 365 * DAY_S * share
        self.dice = random.Random(SEED)
        self.step_s = 0.0
        self.counter = Counter()
        self.registry = StatusRegistry(clock=self.wall)
        self.happened = dict.fromkeys(("resets", "outages", "updates", "full disks"), 0)

    def wall(self) -> float:
        """Return the time of a host whose clock is set now and then."""
        return 1.8e9 + asyncio.get_running_loop().time() + self.step_s

    async def until_next(self, a_year: float) -> None:
        """Sleep until something that happens so often in a year happens again."""
        await asyncio.sleep(self.dice.expovariate(a_year / (365 * DAY_S)))

    async def link(self, concern: Concern[LinkStatus]) -> None:
        if concern.phase is Phase.TROUBLE and self.dice.random() < 0.7:
            raise LinkLost("/dev/ttyACM0 is not there")
        concern.set_well()
        await self.until_next(RESETS / len(KITS))
        self.happened["resets"] += 1
        raise LinkLost(f"/dev/ttyACM0 went away after {self.dice.randrange(1000)} lines")

    async def outbox(self, concern: Concern[OutboxStatus]) -> None:
        concern.set_well()
        await self.until_next(OUTAGES)
        self.happened["outages"] += 1
        ends = asyncio.get_running_loop().time() + self.dice.expovariate(1 / 3600)
        while asyncio.get_running_loop().time() < ends:
            kind = self.dice.choice([Unreachable("no route"), ServerTrouble("503", status=503)])
            concern.record_failure(kind)
            await asyncio.sleep(self.dice.uniform(10, 600))

    async def location(self, concern: Concern[LocationStatus]) -> None:
        concern.set_well()
        await asyncio.sleep(900)
        if self.registry.concerns[0].phase is Phase.TROUBLE:
            raise Unreachable("no route to the service")

    async def console(self, concern: Concern[ConsoleStatus]) -> None:
        concern.set_well()
        await self.until_next(FULL_DISKS / len(KITS))
        self.happened["full disks"] += 1
        for _ in range(2000):
            concern.record_failure(OutboxFull("no room on the disk", hint="make room"))
            await asyncio.sleep(5)

    async def fota(self, concern: Concern[FotaStatus]) -> None:
        concern.set_well()
        await self.until_next(UPDATES / len(KITS))
        self.happened["updates"] += 1
        job = f"job-{self.happened['updates']}"
        for stage in ("downloading", "installing", "restarting"):
            with concern.changing() as status:
                status.job, status.stage = job, stage
            concern.log(logging.INFO, stage)
            await asyncio.sleep(60)
        concern.log(logging.INFO, f"{job}: SUCCEEDED: it runs")

    async def clock(self) -> None:
        while True:
            await self.until_next(CLOCK_STEPS)
            self.step_s += self.dice.uniform(-7200, 7200)

    def start(self) -> list[asyncio.Task[None]]:
        works: list[tuple[Concern[OutboxStatus], Callable[[], Awaitable[None]]]] = []

        def add(kind: type, kit: str, work: Callable[..., Awaitable[None]]) -> None:
            concern = self.registry.add_concern(kind, kit)
            works.append((concern, lambda: work(concern)))

        add(OutboxStatus, "", self.outbox)
        for kit in KITS:
            add(LinkStatus, kit, self.link)
            add(LocationStatus, kit, self.location)
            add(ConsoleStatus, kit, self.console)
            add(FotaStatus, kit, self.fota)

        async def again(
            concern: Concern[OutboxStatus], work: Callable[[], Awaitable[None]]
        ) -> None:
            while True:
                await supervise(concern, work, jitter=self.dice.random)

        tasks = [asyncio.ensure_future(again(*each)) for each in works]
        return [*tasks, asyncio.ensure_future(self.clock())]

    async def live(self) -> tuple[int, int, int]:
        """Live it; return how far bytes, tasks and descriptors grew after its first tenth."""
        tasks = self.start()
        before = (0, 0, 0)
        days = int(self.length_s / DAY_S)
        for day in range(days):
            self.counter.day = day
            await asyncio.sleep(DAY_S)
            if day == days // 10:
                before = in_use()
        after = in_use()
        await cancel_and_wait(*tasks)
        return after[0] - before[0], after[1] - before[1], after[2] - before[2]


def in_use() -> tuple[int, int, int]:
    """Return bytes, tasks and descriptors in use."""
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    return size, len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir()))


def run(smoke: bool) -> Iterator[Row]:
    year = Year(0.1 if smoke else 1.0)
    log = logging.getLogger("agent.daemon")
    log.addHandler(year.counter)
    log.setLevel(logging.INFO)
    log.propagate = False
    tracemalloc.start()
    try:
        grown, tasks, descriptors = virtual_time.run(year.live())
    finally:
        tracemalloc.stop()
        log.removeHandler(year.counter)
        log.propagate = True
    days = year.counter.days
    happened = ", ".join(f"{count} {name}" for name, count in year.happened.items())
    yield Row("memory grown after the first tenth", grown / 1024, "KiB", 256, happened)
    yield Row("tasks grown", tasks, "", 0)
    yield Row("file descriptors grown", descriptors, "", 0)
    yield Row("lines of the log on the worst day", max(days.values()), "lines", 500)
    yield Row("lines of the log in a month", 30 * sum(days.values()) / len(days), "lines", 4000)
    told = abs(year.counter.succeeded - year.happened["updates"])
    yield Row("updates whose end is not told once", told, "updates", 1)
