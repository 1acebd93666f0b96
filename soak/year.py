"""A year of three kits in virtual time: what memory, tasks, log and state files grow to."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import random
import sys
import tempfile
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.measure import Row

from agent.config.profile import OutboxSettings
from agent.daemon.kit.store import KitStore
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
from agent.fota.job_step import JobEvent
from agent.fota.jobs import JobStatus
from agent.fota.journal import JobResult, Journal, OpenJob, journal_folder
from agent.outbox import ItemKind, NewItem, Outbox, OutboxFull
from agent.outbox.delivery_loop import Delivery
from agent.tasks import cancel_and_wait, wait_for_event
from at.protocol.errors import LinkLost
from tests.support.harness import virtual_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from agent.outbox.items import Item, Receipt
    from agent.outbox.store import Store

NAME = "year"
SEED = 20261122
KITS = ("left", "middle", "right")
DAY_S = 86400.0
AT_LEAST = {"resets": 10_000, "outages": 500, "updates": 50, "full disks": 6, "clock steps": 12}
"""In a year, of all kits together; the dice are thrown for a third more."""
LIMITS = OutboxSettings(min_free_bytes=0)
LOOK_S = 600.0
"""Between two looks at an outbox to which nothing was added."""


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


class DayOutbox(Outbox):
    """The agent's outbox, on a disk that is full while `full` is set; without its thread."""

    full = False

    def put(self, items: Sequence[NewItem]) -> Receipt:
        if self.full:
            raise OutboxFull("no room on the disk", hint="make room")
        return super().put(items)

    async def atransact(self, action: Callable[[Store], Any]) -> Any:
        return self.transact(action)

    def submit(self, action: Callable[[Store], object]) -> None:
        self.transact(action)


class Year:
    """The concerns of three kits and what happens to them; `share` is how much of a year.

    The outbox and its delivery, the records of the kits, the histories of their positions and the
    journals of their updates are the agent's own, in `folder`.
    """

    def __init__(self, share: float, folder: Path) -> None:
        self.length_s = 365 * DAY_S * share
        self.folder = folder
        self.dice = random.Random(SEED)
        self.step_s = 0.0
        self.counter = Counter()
        self.registry = StatusRegistry(clock=self.wall)
        self.happened = dict.fromkeys(AT_LEAST, 0)
        self.box = DayOutbox(
            folder / "outbox", LIMITS, clock=self.wall, since_boot=self.now, boot="a boot"
        )
        self.stores = {kit: KitStore(folder, "year", kit) for kit in KITS}
        self.journals = {kit: Journal(journal_folder(folder, kit)) for kit in KITS}
        self.is_out = False
        self.stored = self.taken = 0

    def wall(self) -> float:
        """Return the time of a host whose clock is set now and then."""
        return 1.8e9 + self.now() + self.step_s

    def now(self) -> float:
        """Return the time that nobody sets."""
        return asyncio.get_running_loop().time()

    async def until_next(self, what: str, of: int = 1) -> None:
        """Sleep until something happens again to one `of` so many, and count it."""
        a_year = AT_LEAST[what] * 4 / 3 / of
        await asyncio.sleep(self.dice.expovariate(a_year / (365 * DAY_S)))
        self.happened[what] += 1

    async def send(self, items: Sequence[Item]) -> None:
        """Take the items of one request, as the service does unless it is out."""
        if self.is_out:
            raise self.dice.choice([Unreachable("no route"), ServerTrouble("503", status=503)])
        self.taken += len(items)

    async def link(self, concern: Concern[LinkStatus]) -> None:
        if concern.phase is Phase.TROUBLE and self.dice.random() < 0.7:
            raise LinkLost("/dev/ttyACM0 is not there")
        concern.set_well()
        await self.until_next("resets", of=len(KITS))
        body = b'{"kind":"link-lost","number":%d}' % self.happened["resets"]
        with contextlib.suppress(OutboxFull):
            self.box.put([NewItem(ItemKind.EVENT, concern.kit, body, self.wall())])
            self.stored += 1
        self.delivery.wake()
        raise LinkLost(f"/dev/ttyACM0 went away after {self.dice.randrange(1000)} lines")

    async def outbox(self, concern: Concern[OutboxStatus]) -> None:
        """Deliver, as the agent does."""

        def show() -> None:
            lanes = self.delivery.schedule.trouble().values()
            if lanes:
                concern.record_failure(min(lanes, key=lambda lane: lane.since).error)
            else:
                concern.set_well()

        async def wait(event: asyncio.Event, seconds: float) -> None:
            await wait_for_event(event, max(seconds, LOOK_S))

        self.delivery = Delivery(
            self.box, self, clock=self.now, wait=wait, jitter=self.dice.random, on_ended=show
        )
        concern.set_well()
        await self.delivery.run()

    async def service(self) -> None:
        while True:
            await self.until_next("outages")
            self.is_out = True
            await asyncio.sleep(self.dice.expovariate(1 / 3600))
            self.is_out = False
            self.delivery.try_now()

    async def location(self, concern: Concern[LocationStatus]) -> None:
        concern.set_well()
        store = self.stores[concern.kit]
        while True:
            await asyncio.sleep(3600)
            position: dict[str, object] = {
                "at": datetime.now(UTC).isoformat(),
                "lat": self.dice.random(), "lon": self.dice.random(),
                "uncertainty_m": 25, "sources": ["cells", "wifi"], "cells": 3, "access_points": 9,
            }  # fmt: skip
            store.append_position(position)
            store.update(position=position, reported=position)
            if self.is_out:
                raise Unreachable("no route to the service")

    async def console(self, concern: Concern[ConsoleStatus]) -> None:
        concern.set_well()
        await self.until_next("full disks", of=len(KITS))
        self.box.full = True
        try:
            for _ in range(2000):
                try:
                    self.box.put([NewItem(ItemKind.EVENT, concern.kit, b"{}")])
                    self.stored += 1
                except OutboxFull as full:
                    concern.record_failure(full)
                await asyncio.sleep(5)
        finally:
            self.box.full = False

    async def fota(self, concern: Concern[FotaStatus]) -> None:
        concern.set_well()
        await self.until_next("updates", of=len(KITS))
        job = f"job-{self.happened['updates']}"
        journal = self.journals[concern.kit]
        journal.begin(OpenJob(job_id=job, device_id=concern.kit, document={"version": job}))
        journal.image_path().write_bytes(bytes(1000))
        for event in JobEvent.START, JobEvent.PROVE, JobEvent.INSTALL, JobEvent.PLACE:
            journal.advance(event)
            with concern.changing() as status:
                status.job, status.stage = job, event.value
            concern.log(logging.INFO, event.value)
            await asyncio.sleep(60)
        journal.advance(JobEvent.CONFIRM)
        journal.close(
            JobResult(
                job_id=job,
                status=JobStatus.SUCCEEDED,
                detail="it runs",
                at=datetime.now(UTC).isoformat(),
            )
        )
        journal.delivered(job)
        concern.log(logging.INFO, f"{job}: SUCCEEDED: it runs")

    async def clock(self) -> None:
        while True:
            await self.until_next("clock steps")
            self.step_s += self.dice.uniform(-7200, 7200)

    def start(self) -> list[asyncio.Task[None]]:
        works: list[tuple[Concern[OutboxStatus], Callable[[], Awaitable[None]]]] = []

        def add(kind: type, kit: str, work: Callable[..., Awaitable[None]]) -> None:
            concern: Concern[Any] = self.registry.add_concern(kind, kit)
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
        return [*tasks, *map(asyncio.ensure_future, (self.clock(), self.service()))]

    def in_use(self) -> tuple[int, int, int, int]:
        """Return bytes of memory, tasks, descriptors and state files in use."""
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        files = sum(len(names) for _, _, names in os.walk(self.folder))
        return size, len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir())), files

    async def live(self) -> list[int]:
        """Live it; return how far what is in use grew after its first tenth."""
        tasks = self.start()
        before = self.in_use()
        days = int(self.length_s / DAY_S)
        for day in range(days):
            self.counter.day = day
            await asyncio.sleep(DAY_S)
            if day == days // 10:
                before = self.in_use()
        after = self.in_use()
        self.is_out = False
        await self.delivery.flush(patience_s=DAY_S)
        await cancel_and_wait(*tasks)
        return [then - first for then, first in zip(after, before, strict=True)]


def run(smoke: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        yield from rows(Path(name), 0.05 if smoke else 1.0)


def rows(folder: Path, share: float) -> Iterator[Row]:
    log = logging.getLogger("agent.daemon")
    log.setLevel(logging.INFO)
    log.propagate = False
    logging.getLogger("agent.outbox.delivery_loop").setLevel(logging.CRITICAL)  # as `run` has it
    tracemalloc.start()
    # CPython builds its table of interned strings, through which parts of paths go, anew once it is
    # full of strings that are gone: before the year, or it looks like a growth of 1.9 MB in it.
    for number in range(200_000):
        sys.intern(f"{number} is gone")

    async def live() -> tuple[Year, list[int]]:
        year = Year(share, folder)
        log.addHandler(year.counter)
        try:
            return year, await year.live()
        finally:
            log.removeHandler(year.counter)
            year.box.close()

    try:
        year, (grown, tasks, descriptors, files) = virtual_time.run(live())
    finally:
        tracemalloc.stop()
        log.propagate = True
    days = year.counter.days
    happened = ", ".join(f"{count} {name}" for name, count in year.happened.items())
    yield Row("memory grown after the first tenth", grown / 1024, "KiB", 256, happened)
    yield Row("tasks grown", tasks, "", 0)
    yield Row("file descriptors grown", descriptors, "", 0)
    yield Row("state files grown", files, "", 6)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    yield Row("bytes of all state files", size / 1024, "KiB", 3 * 1024 + 3 * 8 + 2048)
    yield Row("lines of the log on the worst day", max(days.values()), "lines", 500)
    yield Row("lines of the log in a month", 30 * sum(days.values()) / len(days), "lines", 4000)
    told = abs(year.counter.succeeded - year.happened["updates"])
    lacking = sum(year.happened[what] < count * share for what, count in AT_LEAST.items())
    yield Row("kinds of events that came too seldom", lacking, "", 0)
    yield Row("events that were not taken", year.stored - year.taken, "", 0,
              fault="a year of resets, outages and updates",
              injected=sum(year.happened.values()))  # fmt: skip
    yield Row("updates whose end is not told once", told, "updates", 1)
