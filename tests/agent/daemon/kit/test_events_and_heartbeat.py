"""From an event to the outbox: encoded, on disk, counted; a full disk, a stalled event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent
from agent.auth.credential import Keyring, ProjectKey
from agent.config import Secret
from agent.config.profile import EventSettings, OutboxSettings, Profile
from agent.daemon.kit.events_and_heartbeat import KitEvents, event_item, heartbeat_item
from agent.daemon.snapshot import EventsStatus, LinkStatus, Phase
from agent.daemon.status import AgentEvent, AgentEventKind, StatusRegistry
from agent.daemon.supervisor import supervise
from agent.daemon.watchdog import StallDetector
from agent.observability.ingest.device_identity import DeviceIdentity, IdentityTracker
from agent.outbox.items import Selection
from agent.redact import hide
from tests.support.outbox.outboxes import OutboxOnFullDisk

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


KIT = IdentityTracker.of(DeviceIdentity("kit-1", "nrf9161dk", "main", "1.0.0"))
NO_HEARTBEAT = EventSettings(heartbeat_s=0)
KEYRING = Keyring([ProjectKey(Secret("a-project-key-for-tests"), header="Service-Project-Key")])


class Bench:
    """A board with one kit whose events go to an outbox on disk."""

    def __init__(self, folder: Path) -> None:
        self.outbox = OutboxOnFullDisk(folder / "outbox", OutboxSettings(min_free_bytes=0))
        self.registry = StatusRegistry()
        self.link = self.registry.add_concern(LinkStatus, "left")
        self.again = asyncio.Event()
        self.wakes = asyncio.Semaphore(0)
        self.now = 0.0
        self.up_s = 0.0
        self.start()

    def start(self) -> None:
        """Begin with new ones in memory, as after a restart of the agent."""
        self.events = KitEvents(
            self.registry.add_concern(EventsStatus, "left"),
            self.outbox,
            KIT,
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

        work = partial(self.events.run, Profile(events=events), keyring)
        return asyncio.ensure_future(supervise(self.events.concern, work, wait=wait))

    async def kept(self) -> list[dict]:
        """Return the events that are in the outbox."""
        lanes = await self.outbox.atransact(lambda store: store.lanes())
        items = await self.outbox.atransact(
            lambda store: [
                item for lane in lanes for item in store.take(*lane, Selection(100, 1 << 20))
            ]
        )
        await self.outbox.atransact(lambda store: store.release_all())
        return [json.loads(item.body) for item in items]

    async def until_phase(self, phase: Phase) -> None:
        while self.events.concern.phase is not phase:
            await self.registry.changed()

    async def until_fact(self, name: str, value: int) -> None:
        while getattr(self.events.concern.status, name) != value:
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


async def test_what_is_told_again_after_a_restart_is_one_event(bench: Bench):
    at = datetime.now(UTC) - timedelta(hours=1)
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
    bench, began = Bench(folder), datetime.now(UTC)
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
                await bench.events.store()
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
            await bench.until_phase(Phase.TROUBLE)
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
    await bench.until_phase(Phase.WELL)
    at = datetime.now(UTC) - timedelta(seconds=OutboxSettings().max_age_s + 1)
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
    await bench.until_phase(Phase.WELL)
    bench.outbox.full = True
    for _ in range(3):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.until_phase(Phase.TROUBLE)
    assert [record.message for record in caplog.records] == [
        "the disk is full; try: free some space"
    ]
    bench.outbox.full = False
    bench.again.set()
    await bench.until_phase(Phase.WELL)
    assert len(await bench.kept()) == 3
    await ended(running)


async def test_what_does_not_fit_into_memory_either_is_counted(bench: Bench):
    for _ in range(1002):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    assert bench.events.concern.status.lost == 2


async def test_what_is_still_in_memory_is_kept_at_the_end(bench: Bench):
    bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.events.store()
    assert len(await bench.kept()) == 1


@pytest.mark.parametrize(
    ("events", "keyring", "why", "way_out"),
    [
        (EventSettings(), Keyring(), "no project key is set", "`cellagent reload` takes it"),
        (EventSettings(own=False), KEYRING, "events.own is false", ""),
    ],
)
async def test_without_a_project_key_there_is_no_event_and_no_trouble_and_it_is_said_once(
    bench: Bench, caplog: pytest.LogCaptureFixture, events, keyring, why, way_out
):
    caplog.set_level(logging.INFO)
    for _ in range(2):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
        await bench.supervised(events, keyring)
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await bench.events.store()
    assert bench.events.concern.phase is Phase.OFF
    assert way_out in (bench.events.concern.status.hint or "")
    assert [record.message for record in caplog.records] == [f"off: {why}"]
    assert await bench.kept() == []


async def test_events_are_turned_off_while_one_is_being_stored(bench: Bench):
    for _ in range(2):
        bench.link.publish(AgentEventKind.LINK_LOST, "away")
    storing = asyncio.create_task(bench.events.store())  # as at a restart of the kit
    await asyncio.sleep(0)
    await bench.supervised(EventSettings(own=False))
    await storing


async def test_what_is_stored_as_a_reload_comes_is_counted(bench: Bench):
    running = bench.supervised()
    await bench.until_phase(Phase.WELL)
    bench.link.publish(AgentEventKind.LINK_LOST, "away")
    await asyncio.sleep(0)
    await ended(running)
    await bench.events.store()
    assert bench.events.concern.status.link_lost_count == len(await bench.kept()) == 1


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


def test_every_kind_of_event_has_its_count_in_the_status_and_its_line_in_the_page() -> None:
    page = (Path(__file__).parents[4] / "docs/howto/crashes.md").read_text()
    for kind in AgentEventKind:
        words, reason = kind.value
        assert kind.counter in EventsStatus.__struct_fields__
        assert re.search(rf"\| {words} \|.*\| `0x{reason:04x}` \|", page)


async def test_a_loop_that_stands_still_is_told_once_while_it_does_and_where(bench: Bench):
    told: list[str] = []
    tells, looks = threading.Event(), threading.Semaphore(0)

    def report(text: str) -> None:
        told.append(text)
        bench.events.keep_at_once(AgentEvent(AgentEventKind.WATCHDOG, datetime.now(UTC), text))
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


@pytest.mark.contract("O3.4")
@pytest.mark.parametrize("happening", list(AgentEventKind))
def test_what_happened_is_a_trace_with_the_time_it_happened(happening):
    item = event_item(AgentEvent(happening, NOW, "x" * 2000), KIT, "left")
    event = json.loads(item.body)
    assert event["type"] == "trace"
    assert event["captured_date"] == "2026-01-02T03:04:05Z"
    assert event["event_info"]["reason"] == happening.value[1]
    assert event["user_info"] == {
        "agent_event": happening.value[0],
        "detail": "x" * 500,
        "software_type": "main",
        "software_version": "1.0.0",
    }
    assert item.captured_s == NOW.timestamp()


def test_the_agent_is_a_component_of_its_own_on_the_kits_device():
    for item in (event_item(AgentEvent(AgentEventKind.LINK_LOST, NOW), KIT, "left"), beat()):
        event = json.loads(item.body)
        assert (event["device_serial"], event["hardware_version"]) == ("kit-1", "nrf9161dk")
        assert (event["software_type"], event["software_version"]) == (
            "cellagent",
            agent.__version__,
        )


def beat():
    return heartbeat_item({"link_up_s": 3600.0}, KIT, "left", NOW)


def test_what_is_not_known_of_the_kits_software_is_not_named():
    unknown = IdentityTracker.of(DeviceIdentity("kit-1", "unknown", "unknown", "unknown"))
    event = json.loads(event_item(AgentEvent(AgentEventKind.LINK_LOST, NOW), unknown, "left").body)
    assert event["user_info"] == {"agent_event": "link lost"}


def test_the_same_happening_has_the_same_key_and_no_other_has():
    def key(what: AgentEventKind, seconds: float, kit: str = "left", key: str = "") -> str | None:
        at = NOW + timedelta(seconds=seconds)
        return event_item(AgentEvent(what, at, "a", key), KIT, kit).key

    assert key(AgentEventKind.FOTA_FAILED, 0, key="job") == key(
        AgentEventKind.FOTA_FAILED, 9, key="job"
    )
    keys = [
        key(AgentEventKind.LINK_LOST, 0),
        key(AgentEventKind.LINK_LOST, 0.5),
        key(AgentEventKind.MODEM_RESET, 0),
        key(AgentEventKind.LINK_LOST, 0, "right"),
        key(AgentEventKind.FOTA_FAILED, 0, key="job"),
        key(AgentEventKind.FOTA_FAILED, 0, key="other"),
        beat().key,
    ]
    assert len(set(keys)) == len(keys)


def test_a_secret_in_what_went_wrong_is_hidden():
    hide("a-key-that-nobody-may-see")
    item = event_item(
        AgentEvent(AgentEventKind.WATCHDOG, NOW, "a-key-that-nobody-may-see"), KIT, "left"
    )
    assert b"nobody-may-see" not in item.body


@pytest.mark.contract("O3.4")
def test_a_port_may_have_any_name():
    item = event_item(
        AgentEvent(AgentEventKind.LINK_LOST, NOW, "/dev/tty\udcff was lost"), KIT, "left"
    )
    assert json.loads(item.body)["user_info"]["detail"] == "/dev/tty\\udcff was lost"
