"""From what happens to the outbox: an outbox on disk, a disk that is full, a loop that stalls."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.auth.credential import Keyring
from agent.auth.project_key import ProjectKey
from agent.config import Secret
from agent.config.profile import EventSettings, Profile
from agent.config.profile import OutboxSettings as Limits
from agent.daemon.kit.events import KitEvents
from agent.daemon.status import AgentEvent, AgentEventKind, State, StatusRegistry
from agent.daemon.supervisor import supervise
from agent.daemon.watchdog import StallDetector
from agent.observability.ingest.device_identity import DeviceIdentity
from agent.outbox import NewItem, Outbox, OutboxFull, Receipt
from agent.wiring.forwarding import utc_now
from at.protocol.errors import CommandTimeout

KIT = DeviceIdentity("kit-1", "nrf9161dk", "main", "1.0.0")
NO_HEARTBEAT = EventSettings(heartbeat_s=0)
KEYRING = Keyring([ProjectKey(Secret("a-project-key-for-tests"), header="Service-Project-Key")])


class SmallDisk(Outbox):
    """An outbox on a disk that is full until it is not."""

    full = False

    async def aput(self, items: list[NewItem]) -> Receipt:
        if self.full:
            raise OutboxFull("the disk is full", hint="free some space")
        return await super().aput(items)


class Bench:
    """A board with one kit whose events go to an outbox on disk."""

    def __init__(self, folder: Path) -> None:
        self.outbox = SmallDisk(folder / "outbox", Limits(min_free_bytes=0))
        self.registry = StatusRegistry()
        self.link = self.registry.add_concern("link", "left")
        self.again = asyncio.Event()
        self.wakes = asyncio.Semaphore(0)
        self.now = 0.0
        self.up_s = 0.0
        self.start()

    def start(self) -> None:
        """Begin with new ones in memory, as after a restart of the agent."""
        self.events = KitEvents(
            self.registry.add_concern("events", "left"),
            self.outbox,
            lambda: KIT,
            self.wakes.release,
            lambda: self.up_s,
            clock=lambda: self.now,
        )
        self.registry.subscribe("left", self.events.add)

    def supervised(
        self, events: EventSettings = NO_HEARTBEAT, keyring: Keyring = KEYRING
    ) -> asyncio.Task[None]:
        async def wait(_event: asyncio.Event, _seconds: float) -> None:
            await self.again.wait()

        work = partial(self.events.run, lambda: Profile(events=events), keyring)
        return asyncio.ensure_future(supervise(self.events.concern, work, wait=wait))

    async def kept(self) -> list[dict]:
        """Return the events that are in the outbox."""
        lanes = await self.outbox.atransact(lambda store: store.lanes())
        items = await self.outbox.atransact(
            lambda store: [item for lane in lanes for item in store.claim(*lane, 100, 1 << 20)]
        )
        await self.outbox.atransact(lambda store: store.release_all())
        return [json.loads(item.body) for item in items]

    async def until_state(self, state: State) -> None:
        while self.events.concern.state is not state:
            await self.registry.changed()

    async def until_fact(self, name: str, value: int) -> None:
        while self.events.concern.facts.get(name) != value:
            await self.registry.changed()


@pytest.fixture
async def bench(tmp_path: Path):
    made = Bench(tmp_path)
    yield made
    made.outbox.close()


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_happens_is_on_disk_at_once_with_the_time_it_happened(bench: Bench):
    running = bench.supervised()
    at = datetime.now(UTC) - timedelta(hours=3)
    bench.link.publish(AgentEventKind.LINK_LOST, "/dev/ttyACM0 was lost", at=at)
    await bench.until_fact("link_lost_count", 1)
    (event,) = await bench.kept()
    assert event["user_info"]["detail"] == "/dev/ttyACM0 was lost"
    assert datetime.fromisoformat(event["captured_date"]) - at < timedelta(milliseconds=1)
    await bench.wakes.acquire()
    await ended(running)


async def test_what_happens_to_the_agent_happens_to_each_kit_and_no_others_business_to_one(
    bench: Bench,
):
    heard: list[AgentEvent] = []
    bench.registry.subscribe("right", heard.append)
    bench.link.publish(AgentEventKind.LINK_LOST, "away")
    bench.registry.add_concern("outbox").publish(AgentEventKind.WATCHDOG, "a defect")
    assert [each.kind for each in heard] == [AgentEventKind.WATCHDOG]
    bench.registry.remove_kit("right")
    bench.registry.add_concern("outbox").publish(AgentEventKind.WATCHDOG, "a defect")
    assert len(heard) == 1


async def test_what_is_told_again_after_a_restart_is_one_event(bench: Bench):
    at = utc_now() - timedelta(hours=1)
    for _ in range(3):
        bench.start()
        running = bench.supervised()
        bench.link.publish(AgentEventKind.FOTA_FAILED, "j: FAILED", at=at, key="j")
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
        await bench.until_fact("link_lost_count", 1)
        await ended(running)
    told = [event["user_info"]["agent_event"] for event in await bench.kept()]
    assert sorted(told) == ["fota failed", "link lost", "link lost", "link lost"]


@given(
    steps=st.lists(
        st.sampled_from(["lost", "reset", "job 1", "job 2", "full", "room", "kill", "end"]),
        max_size=25,
    )
)
@settings(max_examples=60)
def test_each_happening_is_one_event_whatever_comes_between(steps, tmp_path_factory):
    asyncio.run(play(steps, tmp_path_factory.mktemp("bench")))


async def play(steps: list[str], folder: Path) -> None:
    """Play a life of the agent, which tells the ends of jobs again after each start."""
    bench, began = Bench(folder), utc_now()
    told, on_disk, in_memory = set[str](), set[str](), set[str]()
    jobs = dict[str, datetime]()
    running = bench.supervised()
    for number, step in enumerate([*steps, "room", "end", "end"]):
        at = began + timedelta(milliseconds=number)
        if step in {"full", "room"}:
            bench.outbox.full = step == "full"
            (bench.again.clear if bench.outbox.full else bench.again.set)()
        elif step in {"kill", "end"}:
            await ended(running)
            if step == "end":
                await bench.events.close()
            in_memory.clear()  # nothing but what a full disk had kept there
            bench.start()
            running = bench.supervised()
            for job, ended_at in jobs.items():
                bench.link.publish(AgentEventKind.FOTA_FAILED, job, at=ended_at, key=job)
        elif step in {"lost", "reset"}:
            told.add(f"{step} {number}")
            in_memory.add(f"{step} {number}")
            what = AgentEventKind.LINK_LOST if step == "lost" else AgentEventKind.MODEM_RESET
            bench.link.publish(what, f"{step} {number}", at=at)
        else:
            at = jobs.setdefault(step, at)
            bench.link.publish(AgentEventKind.FOTA_FAILED, step, at=at, key=step)
        if bench.outbox.full and bench.events._pending:
            await bench.until_state(State.TROUBLE)
        elif not bench.outbox.full:
            while bench.events._pending:
                await bench.outbox.atransact(lambda store: store.totals())
            on_disk |= in_memory
            in_memory.clear()
    await ended(running)
    found = [event["user_info"]["detail"] for event in await bench.kept()]
    bench.outbox.close()
    assert len(found) == len(set(found)), "nothing is told twice"
    assert on_disk | set(jobs) <= set(found) <= told | set(jobs)


async def test_what_the_outbox_has_forgotten_by_now_is_not_told_anew(bench: Bench):
    running = bench.supervised()
    await bench.until_state(State.WELL)
    at = utc_now() - timedelta(seconds=Limits().max_age_s + 1)
    bench.link.publish(AgentEventKind.FOTA_FAILED, "j: FAILED", at=at, key="j")
    bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.until_fact("link_lost_count", 1)
    assert len(await bench.kept()) == 1
    await ended(running)


async def test_a_full_disk_is_told_once_and_what_happened_is_kept_when_there_is_room(
    bench: Bench, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    running = bench.supervised()
    await bench.until_state(State.WELL)
    bench.outbox.full = True
    for _ in range(3):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.until_state(State.TROUBLE)
    assert [record.message for record in caplog.records] == [
        "the disk is full; try: free some space"
    ]
    bench.outbox.full = False
    bench.again.set()
    await bench.until_state(State.WELL)
    assert len(await bench.kept()) == 3
    await ended(running)


async def test_what_does_not_fit_into_memory_either_is_counted(bench: Bench):
    for _ in range(1002):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    assert bench.events.concern.facts["lost"] == 2


async def test_what_is_still_in_memory_is_kept_at_the_end(bench: Bench):
    bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.events.close()
    assert len(await bench.kept()) == 1


@pytest.mark.parametrize(
    ("events", "keyring", "why"),
    [
        (EventSettings(), Keyring(), "no project key is set"),
        (EventSettings(own=False), KEYRING, "events.own is false"),
    ],
)
async def test_without_a_project_key_there_is_no_event_and_no_trouble_and_it_is_said_once(
    bench: Bench, caplog: pytest.LogCaptureFixture, events, keyring, why
):
    caplog.set_level(logging.INFO)
    for _ in range(2):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
        await bench.supervised(events, keyring)
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.events.close()
    assert bench.events.concern.state is State.OFF
    assert [record.message for record in caplog.records] == [f"off: {why}"]
    assert await bench.kept() == []


async def test_a_heartbeat_counts_what_happened_since_the_one_before(bench: Bench):
    running = bench.supervised()
    for _ in range(2):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.until_fact("link_lost_count", 2)
    await ended(running)
    for _ in range(2):
        await bench.wakes.acquire()
    metrics = []
    for up_s in (3000.0, 6600.0):
        bench.now += 3600.0
        bench.up_s = up_s
        running = bench.supervised(EventSettings(heartbeat_s=3600.0))
        await bench.wakes.acquire()
        await ended(running)
        beats = [event for event in await bench.kept() if event["type"] == "heartbeat"]
        metrics.append(beats[-1]["event_info"]["metrics"])
    nothing = {kind.counter: 0 for kind in AgentEventKind}
    first = {"interval_s": 3600.0, "agent_uptime_s": 3600.0, "link_up_s": 3000.0}
    assert metrics[0] == {**nothing, **first, "link_lost_count": 2}
    then = {"interval_s": 3600.0, "agent_uptime_s": 7200.0, "link_up_s": 3600.0}
    assert metrics[1] == {**nothing, **then}


@pytest.mark.parametrize(
    ("errors", "events"),
    [
        ([ZeroDivisionError("oops")] * 5, 1),
        ([ZeroDivisionError("oops"), None, ZeroDivisionError("oops")], 2),
        ([CommandTimeout("no answer"), OSError("away")], 0),
    ],
)
async def test_a_task_that_a_defect_ends_is_one_event_until_it_was_well(errors, events):
    registry, heard = StatusRegistry(), []
    registry.subscribe("left", heard.append)
    concern, left = registry.add_concern("location", "left"), list(errors)

    async def work() -> None:
        while left:
            if (error := left.pop(0)) is not None:
                raise error
            concern.set_well()

    async def wait(_event: asyncio.Event, _seconds: float) -> None:
        await asyncio.sleep(0)

    await supervise(concern, work, wait=wait)
    assert [each.kind for each in heard] == [AgentEventKind.WATCHDOG] * events


async def test_a_loop_that_stands_still_is_told_once_while_it_does_and_where(bench: Bench):
    told: list[str] = []
    tells, looks = threading.Event(), threading.Semaphore(0)

    def report(text: str) -> None:
        told.append(text)
        bench.events.keep_at_once(AgentEvent(AgentEventKind.WATCHDOG, utc_now(), text))
        tells.set()

    def clock() -> float:
        looks.release()
        return time.monotonic()

    made_up: dict[str, Any] = {"__name__": "agent.made_up"}
    exec("def stuck(tells):\n    return tells.wait(20)", made_up)
    watch = StallDetector(report, limit_s=0.04, clock=clock)
    watch.start()
    assert made_up["stuck"](tells)  # in the loop's thread: nothing else runs until it is told
    while looks.acquire(blocking=False):
        pass
    assert all(looks.acquire(timeout=20) for _ in range(3))
    assert len(told) == 1
    assert "stands still" in told[0]
    assert told[0].endswith("at agent.made_up:2 (stuck)")
    assert len(await bench.kept()) == 1, "it was on disk before the loop moved"
    watch.stop()


async def test_a_loop_that_turns_is_not_told_of():
    told: list[str] = []
    watch = StallDetector(told.append, limit_s=30.0)
    watch.start()
    await asyncio.sleep(0)
    watch.stop()
    assert told == []
