"""Delivery: in order, one request a device, waits as told, poison set aside; on a moved clock."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config.profile import OutboxSettings
from agent.errors import (
    AgentError,
    BadAnswer,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    ServerTrouble,
    Unreachable,
)
from agent.outbox import ItemKind, NewItem, Outbox, delivery_loop, handoff
from agent.outbox.delivery_loop import Delivery
from agent.outbox.handoff import hand_off
from agent.outbox.items import Item, Selection
from agent.outbox.schedule import LIMITS
from agent.outbox.store import Store
from tests.support.outbox.outboxes import Clock, chunk, chunks, event, outbox
from tests.support.outbox.poisoned_service import POISON, PoisonedService, deliver_good


class Service:
    """Takes requests as `answer` says; knows what arrived, in order."""

    def __init__(self, answer=lambda items: None) -> None:
        self.answer = answer
        self.taken: dict[str, list[bytes]] = {}
        self.requests: list[int] = []
        self.times: list[float] = []
        self.clock = Clock(0.0)
        self.most = 0
        self.in_flight: set[str] = set()

    async def send(self, items: list[Item]) -> None:
        device = items[0].device
        assert device not in self.in_flight, "two requests of one device"
        self.in_flight.add(device)
        self.most = max(self.most, len(self.in_flight))
        self.requests.append(len(items))
        self.times.append(self.clock())
        try:
            await asyncio.sleep(0)
            error = self.answer(items)
            if error is not None:
                raise error
            self.taken.setdefault(device, []).extend(item.body for item in items)
        finally:
            self.in_flight.discard(device)


class Rig:
    def __init__(self, box: Outbox, service: Service, jitter: float = 0.0) -> None:
        self.clock = service.clock
        self.delivery = Delivery(
            box, service, clock=self.clock, wait=self.wait, jitter=lambda: jitter
        )

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        if self.delivery._running:
            await event.wait()
            return
        self.clock.now += seconds

    async def flush(self, patience_s: float = 1e9):
        return await self.delivery.flush(patience_s=patience_s)


@pytest.fixture(scope="module", autouse=True)
def long_looks():
    """Look at the outbox when something is due, not each few seconds of the tests' clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery_loop, "IDLE_S", 3600.0)
        yield


@pytest.fixture
def box(tmp_path: Path):
    with outbox(tmp_path, OutboxSettings(min_free_bytes=0, park_after=3)) as opened:
        yield opened


async def test_all_arrives_in_the_order_of_each_device_one_request_at_a_time(box: Outbox):
    for number in range(250):
        await box.aput([chunk(number, device) for device in ("a", "b", "c")])
    service = Service()
    assert await Rig(box, service).flush() == 750
    for device in "abc":
        assert service.taken[device] == [chunk(number, device).body for number in range(250)]
    assert max(service.requests) == 100
    assert service.most == 3
    assert box.transact(lambda store: store.totals()).waiting == 0


@pytest.mark.contract("O5.1")
async def test_ten_thousand_items_pass_a_server_that_fails_at_random(box: Outbox):
    dice = random.Random(11)
    failed_alone: set[bytes] = set()
    failures = [
        None,
        None,
        None,
        ServerTrouble("500", status=500),
        Unreachable("reset"),
        RateLimited("429", status=429, retry_after_s=3.0),
        PayloadTooLarge("413", status=413),
        Conflict("409", status=409),
        BadAnswer("a portal"),
    ]

    def answer(items: list[Item]) -> AgentError | None:
        error = dice.choice(failures)
        # A single item is never too large for good here.
        if len(items) == 1 and isinstance(error, PayloadTooLarge):
            return None
        if len(items) == 1 and error is not None:
            failed_alone.add(items[0].body)
        return error

    for first in range(0, 10_000, 500):
        await box.aput([chunk(first + at, f"kit{at % 4}") for at in range(500)])
    service = Service(answer)
    await Rig(box, service).flush()
    for device in range(4):
        wanted = [chunk(at, f"kit{device}").body for at in range(10_000) if at % 4 == device]
        taken = service.taken[f"kit{device}"]
        assert sorted(taken) == sorted(wanted)
        # Which alone fails often enough is overtaken by those behind it, and it alone.
        assert [body for body in taken if body not in failed_alone] == [
            body for body in wanted if body not in failed_alone
        ]
    assert len(failed_alone) < 100


async def test_a_poison_item_is_parked_after_three_refusals_while_the_others_pass(box: Outbox):
    await box.aput([event(number) for number in range(100)])

    def answer(items: list[Item]) -> AgentError | None:
        poisoned = any(item.body == event(37).body for item in items)
        return InvalidRequest("bad event", status=400) if poisoned else None

    service = Service(answer)
    rig = Rig(box, service)
    assert await rig.flush() == 99
    (parked,) = box.transact(lambda store: store.list_items())
    assert (parked.id, parked.parked, parked.refusals) == (38, "bad event", 3)
    assert rig.clock.now < 10


async def test_too_much_at_once_is_sent_in_smaller_requests(box: Outbox):
    await box.aput([chunk(number) for number in range(100)])
    service = Service(lambda items: PayloadTooLarge("413", status=413) if len(items) > 10 else None)
    await Rig(box, service).flush()
    assert len(service.taken["kit"]) == 100
    assert service.requests[:5] == [100, 50, 25, 12, 6]


@pytest.mark.parametrize(
    ("error", "times"),
    [
        pytest.param(Unreachable("gone"), [0, 10, 30, 70], id="doubling"),
        pytest.param(
            RateLimited("429", status=429, retry_after_s=30.0), [0, 30, 60, 100], id="as told"
        ),
    ],
)
async def test_waits_grow_and_are_never_shorter_than_told(box: Outbox, error, times):
    await box.aput([chunk(1)])
    left = [error] * 3

    service = Service(lambda items: left.pop() if left else None)
    await Rig(box, service).flush()
    assert service.times == times
    assert service.taken["kit"] == [chunk(1).body]


async def test_jitter_only_lengthens_a_wait(box: Outbox):
    await box.aput([chunk(1)])
    left = [Unreachable("gone")]
    service = Service(lambda items: left.pop() if left else None)
    await Rig(box, service, jitter=1.0).flush()
    assert service.times == [0, 12.5]


async def test_a_flush_does_not_wait_longer_than_it_may(box: Outbox):
    await box.aput([chunk(1), event(1, "other")])
    service = Service(lambda items: Unreachable("gone") if items[0].device == "kit" else None)
    rig = Rig(box, service)
    assert await rig.flush(patience_s=0) == 1
    assert rig.clock.now == 0
    assert rig.delivery.schedule.trouble()


async def test_what_failed_is_no_trouble_once_a_person_has_dropped_it(box: Outbox):
    _, *dropped = (await box.aput([event(1, "other"), chunk(1), event(1), event(2)])).ids
    service = Service(
        lambda items: InvalidRequest("bad", status=400) if items[0].device == "kit" else None
    )
    rig = Rig(box, service)
    told: list[int] = []
    rig.delivery.on_ended = lambda: told.append(len(rig.delivery.schedule.trouble()))
    await rig.flush(patience_s=5)
    assert told[-1] == 2
    box.transact(lambda store: store.drop(dropped))
    await rig.flush(patience_s=0)
    assert told[-1] == 0
    assert rig.delivery.schedule.trouble() == {}
    rig.clock.now += 1000
    service.answer = lambda items: Unreachable("gone")
    await box.aput([event(3)])
    await rig.flush(patience_s=0)
    (trouble,) = rig.delivery.schedule.trouble().values()
    assert (trouble.since, trouble.tries) == (rig.clock.now, 1)


async def test_what_is_handed_off_is_found_within_a_longer_wait_that_a_service_asked_for(
    box: Outbox,
):
    asked = [RateLimited("429", status=429, retry_after_s=10_000.0)]
    service = Service(lambda _items: asked.pop() if asked else None)
    rig, left = Rig(box, service), [event(1, "other")]

    async def wait(changed: asyncio.Event, seconds: float) -> None:
        if left and not rig.delivery._running:
            hand_off(box.folder, [left.pop()], OutboxSettings(min_free_bytes=0), 0.0)
        await rig.wait(changed, seconds)

    rig.delivery.wait = wait
    await box.aput([chunk(1)])
    await rig.flush(patience_s=20_000)
    assert service.times == [0, delivery_loop.IDLE_S, 10_000]


async def test_a_folder_of_others_that_cannot_be_read_is_told_of_once_and_anew_after_it_could(
    box: Outbox, caplog: pytest.LogCaptureFixture
):
    rig = Rig(box, Service())

    async def seen() -> int:
        caplog.clear()
        for number in range(2):
            await box.aput([chunk(number)])
            await rig.flush(patience_s=0)
        return sum("what others left stays" in each.message for each in caplog.records)

    inbox = box.folder / handoff.FOLDER
    inbox.mkdir(mode=0o777, exist_ok=True)
    inbox.chmod(0o777)
    assert [await seen(), await seen()] == [1, 0]
    inbox.chmod(0o700)
    assert await seen() == 0
    inbox.chmod(0o777)
    assert await seen() == 1


async def test_a_refused_key_stops_everything_and_parks_nothing(box: Outbox):
    await box.aput([chunk(1), chunk(2, "other")])
    service = Service(lambda items: Forbidden("403", status=403))
    rig = Rig(box, service)
    assert await rig.flush(patience_s=3500) == 0
    assert box.transact(lambda store: store.totals()).parked == 0
    assert len(service.requests) <= 2, "not more than once an hour unless asked"
    assert str(rig.delivery.schedule.blocked) == "403"
    service.answer = lambda items: None
    rig.delivery.try_now()
    assert await rig.flush(patience_s=0) == 2
    assert rig.delivery.schedule.blocked is None


async def test_a_stop_in_the_middle_of_a_request_loses_nothing(box: Outbox):
    await box.aput([chunk(number) for number in range(5)])
    started = asyncio.Event()

    class Stuck(Service):
        async def send(self, items: list[Item]) -> None:
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(Rig(box, Stuck()).delivery.run())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    service = Service()
    await Rig(box, service).flush()
    assert service.taken["kit"] == [chunk(number).body for number in range(5)]


async def test_what_comes_while_it_runs_is_delivered_on_a_wake(box: Outbox):
    waits, arrived = asyncio.Event(), asyncio.Event()

    async def wait(changed: asyncio.Event, _seconds: float) -> None:
        waits.set()
        await changed.wait()  # no time passes

    service = Service(lambda _items: arrived.set())
    delivery = Delivery(box, service, wait=wait)
    task = asyncio.create_task(delivery.run())
    await waits.wait()
    await box.aput([chunk(1)])
    assert not arrived.is_set()
    delivery.wake()
    await asyncio.wait_for(arrived.wait(), 60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("call", [Delivery.try_now, Delivery.service_is_back])
async def test_a_person_or_a_service_that_is_back_ends_a_wait_at_once(box: Outbox, call):
    failed, arrived = asyncio.Event(), asyncio.Event()

    def answer(_items: list[Item]) -> AgentError | None:
        if not failed.is_set():
            return Unreachable("gone")
        arrived.set()
        return None

    async def wait(changed: asyncio.Event, _seconds: float) -> None:
        if failed.is_set() and not changed.is_set():
            waits.set()
        await changed.wait()  # no time passes

    waits = asyncio.Event()
    service = Service(answer)
    delivery = Delivery(box, service, clock=service.clock, wait=wait, on_ended=failed.set)
    await box.aput([chunk(1)])
    task = asyncio.create_task(delivery.run())
    await waits.wait()
    assert not arrived.is_set()
    call(delivery)
    await asyncio.wait_for(arrived.wait(), 60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_items_that_cannot_be_read_set_their_lane_back_and_the_others_go_on(
    box: Outbox, monkeypatch: pytest.MonkeyPatch
):
    await box.aput([chunk(1), chunk(2, "other")])
    service, real = Service(), Store.next_batch
    rig, failed = Rig(box, service), []

    def next_batch(store: Store, device: str, kind: ItemKind, selection: Selection) -> list[Item]:
        if device == "kit" and len(failed) < 10:
            failed.append(service.clock())
            raise OSError("the disk does not answer")
        return real(store, device, kind, selection)

    monkeypatch.setattr(Store, "next_batch", next_batch)
    await rig.flush(patience_s=0)
    assert (set(failed), list(service.taken)) == ({0.0}, ["other"])
    (trouble,) = rig.delivery.schedule.trouble().values()
    assert "the disk does not answer" in str(trouble.error)
    await rig.flush()
    assert len(set(failed)) > 2, "it waits between two tries"
    assert service.taken["kit"] == [chunk(1).body]


async def test_a_defect_in_the_sender_sets_only_its_lane_back(box: Outbox):
    await box.aput([chunk(1), chunk(2, "other")])

    def answer(items: list[Item]) -> None:
        if items[0].device == "kit":
            raise ZeroDivisionError("a defect")

    service = Service(answer)
    rig = Rig(box, service)
    await rig.flush(patience_s=0)
    assert list(service.taken) == ["other"]
    service.answer = lambda items: None
    await rig.flush()
    assert service.taken["kit"] == [chunk(1).body]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from(["good", "good", "good", *POISON]), min_size=1, max_size=40),
    st.sampled_from(list(ItemKind)),
    st.sampled_from([1, 2, 3, 7, 100]),
    st.sets(st.integers(0, 60), max_size=4),
)
async def test_all_that_is_good_arrives_in_order_within_a_bound_whatever_else_waits(
    tmp_path_factory: pytest.TempPathFactory,
    moods: list[str],
    kind: ItemKind,
    batch: int,
    kills: set[int],
) -> None:
    """Each poisoned message costs at most 40 requests: its share of the division, its own tries."""
    folder = tmp_path_factory.mktemp("box")
    messages: list[list[NewItem]] = []
    for number, _ in enumerate(moods):
        if kind is ItemKind.CHUNK:
            messages.append(chunks(bytes([2, number]) * (1 + number % 5 * 12)))
        else:
            messages.append([NewItem(kind, "kit", b'{"n":%d}' % number)])
    poison = {
        each[len(each) // 2].body: mood
        for each, mood in zip(messages, moods, strict=True)
        if mood != "good"
    }
    good = [
        item.body
        for each, mood in zip(messages, moods, strict=True)
        if mood == "good"
        for item in each
    ]
    before = LIMITS[kind]
    LIMITS[kind] = (batch, before[1])
    try:
        with outbox(folder) as box:
            await box.aput([item for each in messages for item in each])
        service = PoisonedService(poison, frozenset(kills))
        await deliver_good(folder, service, set(good))
    finally:
        LIMITS[kind] = before
    came = list(dict.fromkeys(body for body in service.taken if body in set(good)))
    assert came == good
    items = sum(map(len, messages))
    assert service.requests <= items + 40 * len(poison) + 40 * len(kills)


@pytest.mark.contract("O5.1")
@pytest.mark.parametrize(
    "error",
    [
        *[NotFound("<html>", status=status) for status in (404, 410)],
        *[InvalidRequest("<html>", status=status) for status in (400, 405, 415, 418, 451)],
        PayloadTooLarge("<html>", status=413),
        *[ServerTrouble("", status=status) for status in (500, 502, 503)],
        Unreachable("reset"),
        ZeroDivisionError("a defect"),
    ],
    ids=lambda error: str(getattr(error, "status", None) or error),
)
@pytest.mark.parametrize("kind", [ItemKind.EVENT, ItemKind.CHUNK])
async def test_a_service_that_is_wrong_for_a_day_parks_nothing_and_is_asked_seldom(
    box: Outbox, error: Exception, kind: ItemKind
) -> None:
    made = [chunk(at) if kind is ItemKind.CHUNK else event(at) for at in range(100)]
    await box.aput(made)
    service = Service(lambda items: error)
    rig = Rig(box, service)
    await rig.flush(patience_s=86400.0)
    assert len(service.requests) < 100
    assert box.transact(lambda store: store.totals()).parked == 0
    service.answer = lambda items: None
    await rig.flush(patience_s=7200.0)
    assert service.taken["kit"] == [each.body for each in made]
    assert box.transact(lambda store: store.totals()).parked == 0
