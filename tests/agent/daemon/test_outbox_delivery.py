"""How the outbox and its delivery do, as the agent tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import UNSET

from agent.config.profile import OutboxSettings
from agent.daemon.outbox_delivery import OutboxDelivery
from agent.daemon.snapshot import OutboxStatus, Phase, State
from agent.daemon.status import StatusRegistry
from agent.errors import AgentError, RateLimited, ServiceRefusal, Unreachable
from agent.outbox import NewItem, delivery_loop
from agent.outbox.items import COUNTS, Item
from agent.outbox.store import Store
from tests.support.outbox.outboxes import Clock, chunk, event
from tests.support.outbox.poisoned_service import PoisonedService


async def test_a_full_disk_is_told_with_its_time_and_a_command_for_this_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(1e9)
    registry = StatusRegistry(clock=clock)
    registry.profile = "bench"
    limits = OutboxSettings(min_free_bytes=1 << 60)
    delivery = OutboxDelivery(tmp_path / "outbox", limits, registry.add_concern(OutboxStatus))
    try:
        await delivery.start(PoisonedService({}))
        clock.now += 3600.0
        found = registry.now()
        await delivery.status(found)
        clock.now += 60.0
        status, _ = await delivery.status(registry.now())
        assert status.since == found
        assert "outbox.min_free_bytes NUMBER --profile bench`" in str(status.hint)
        monkeypatch.setattr(Store, "disk_trouble", lambda _: AgentError("cannot be written"))
        status, _ = await delivery.status(registry.now())
        assert (status.trouble, status.hint) == ("cannot be written", None)
        assert (status.state, status.since) == (State.TROUBLE, found)
        monkeypatch.setattr(Store, "disk_trouble", lambda _: None)
        status, _ = await delivery.status(registry.now())
        assert (status.state, status.trouble) == (State.WELL, None)
        monkeypatch.undo()
        status, _ = await delivery.status(registry.now())
        assert status.since == registry.now(), "anew"
    finally:
        await delivery.stop()
        delivery.close()


class Failing:
    """A service that takes nothing of the devices that it has an error for."""

    def __init__(self, **errors: AgentError) -> None:
        self.errors = errors
        self.asked = asyncio.Semaphore(0)

    async def send(self, items: Sequence[Item]) -> None:
        self.asked.release()
        if error := self.errors.get(items[0].device):
            raise error


async def test_each_lane_that_fails_is_told_with_its_next_try_and_is_well_once_it_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delivery_loop, "IDLE_S", 3600.0)
    registry = StatusRegistry(clock=Clock(1e9))
    concern = registry.add_concern(OutboxStatus)
    delivery = OutboxDelivery(tmp_path / "outbox", OutboxSettings(min_free_bytes=0), concern)
    service = Failing(
        late=RateLimited("asks for a wait", status=429, retry_after_s=3600.0),
        soon=Unreachable("gone"),
    )
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def captured(item: NewItem, minutes: int) -> NewItem:
        return replace(item, captured_s=at.timestamp() + 60.0 * minutes)

    async def passed(requests: int) -> None:
        for _ in range(requests):
            await asyncio.wait_for(service.asked.acquire(), 8)  # before any next try
        await asyncio.wait({*delivery._delivery._running, asyncio.ensure_future(asyncio.sleep(0))})
        await asyncio.sleep(0)  # what has ended is told of

    try:
        await delivery.outbox.aput(
            [captured(event(1, "good"), 0), captured(event(2, "late"), 1),
             captured(event(3, "soon"), 2), captured(chunk(4, "soon"), 3)]
        )  # fmt: skip
        await delivery.start(service)
        await passed(4)
        now = registry.now()
        status, kits = await delivery.status(now)
        assert (status.phase, status.state) == (Phase.TROUBLE, State.TROUBLE)
        assert (status.waiting, status.parked, status.bytes > 0) == (3, 0, True)
        assert status.counts["delivered"] == 1
        assert set(status.counts) == set(COUNTS)
        assert status.oldest == at + timedelta(minutes=1)
        assert isinstance(status.failing, list)
        told = {(each.device, each.kind): each for each in status.failing}
        assert {key: (each.what, each.failures, each.held) for key, each in told.items()} == {
            ("late", "event"): ("asks for a wait", 1, 0),
            ("soon", "event"): ("gone", 1, 0),
            ("soon", "chunk"): ("gone", 1, 0),
        }
        late, *soon = told["late", "event"], told["soon", "event"], told["soon", "chunk"]
        for each in told.values():
            assert now - timedelta(seconds=60) <= each.since <= now
            assert each.since.microsecond % 1000 == each.next_try.microsecond % 1000 == 0
        assert timedelta(minutes=59) < late.next_try - now < timedelta(minutes=75)
        assert all(now - timedelta(minutes=1) < each.next_try < late.next_try for each in soon)
        assert status.since == min(each.since for each in told.values())
        assert status.next_try == min(each.next_try for each in soon)
        assert status.trouble in {"asks for a wait", "gone"}
        assert {name: (of.waiting, of.oldest, of.next_try) for name, of in kits.items()} == {
            "late": (1, at + timedelta(minutes=1), late.next_try),
            "soon": (2, at + timedelta(minutes=2), status.next_try),
        }

        await delivery.start(service)  # a reload ends no trouble, but each wait
        assert concern.phase is Phase.TROUBLE
        await passed(3)
        status, _ = await delivery.status(now)
        assert isinstance(status.failing, list)
        assert [each.failures for each in status.failing] == [2, 2, 2], "before the reload, too"
        service.errors = {}
        delivery.service_is_back()
        await passed(2)
        status, kits = await delivery.status(now)
        assert (status.phase, list(kits)) == (Phase.TROUBLE, ["late"]), "it asked for the wait"
        delivery.try_now()
        await passed(1)
        status, kits = await delivery.status(now)
        assert (status.phase, status.failing, kits) == (Phase.WELL, UNSET, {})
        assert (status.oldest, status.counts["delivered"]) == (None, 4)
        await delivery.outbox.aput([event(5, "good")])
        delivery.wake()
        await passed(1)
    finally:
        await delivery.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        delivery.close()
    await delivery.stop()  # there is nothing left to end


async def test_a_refused_item_is_told_with_how_it_is_found_and_given_up(tmp_path: Path):
    for own, told in (("", "`cellagent outbox drop ID`"), ("write it so", "write it so")):
        registry = StatusRegistry(clock=Clock(1e9))
        concern = registry.add_concern(OutboxStatus)
        limits = OutboxSettings(min_free_bytes=0)
        delivery = OutboxDelivery(tmp_path / f"outbox{own}", limits, concern)
        service = Failing(wrong=ServiceRefusal("reason: too large", hint=own, status=400))
        try:
            await delivery.outbox.aput([event(1, "wrong")])
            await delivery.start(service)
            while concern.phase is not Phase.TROUBLE:
                await asyncio.wait_for(registry.changed(), 8)
            assert told in (concern.status.hint or "")
        finally:
            await delivery.stop()
            delivery.close()


def test_an_outbox_that_was_mended_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    folder = tmp_path / "outbox"
    limits = OutboxSettings(min_free_bytes=0)
    for damaged in (False, True):
        registry = StatusRegistry(clock=Clock(1e9))
        delivery = OutboxDelivery(folder, limits, registry.add_concern(OutboxStatus))
        assert (delivery.outbox.damage is not None) is damaged
        told = [each for each in caplog.records if each.levelname == "WARNING"]
        assert bool(told) is damaged
        (number,) = delivery.outbox.put([event(1)]).ids
        kept = delivery.outbox.transact(lambda store, of=number: store.index.entries[of])
        delivery.close()
        kept.segment.path.unlink()
