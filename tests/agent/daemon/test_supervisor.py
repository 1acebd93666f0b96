"""A task that fails is tried again, later each time, and its trouble is logged once."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from agent.daemon.snapshot import ConsoleStatus, FotaStatus, LinkStatus, LocationStatus, Phase
from agent.daemon.status import AgentEventKind, StatusRegistry
from agent.daemon.supervisor import supervise
from agent.errors import AgentError, RateLimited, Unreachable
from at.protocol.errors import CommandTimeout, LinkLost, PortNotFound

if TYPE_CHECKING:
    from agent.daemon.status import Concern


class Waits:
    """Takes note of the waits, and waits for none of them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, event: asyncio.Event, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def working(concern: Concern, *ends: Exception | None):
    """Return work that ends as listed: None is being well and then failing with the next."""
    left = list(ends)

    async def work() -> None:
        if not left:
            concern.set_well()
            return
        error = left.pop(0)
        if error is not None:
            raise error
        concern.set_well()

    return work


async def supervised(concern: Concern, *ends: Exception, jitter: float = 0.0) -> Waits:
    waits = Waits()
    work = working(concern, *ends)
    await supervise(concern, work, wait=waits, jitter=lambda: jitter)
    return waits


async def test_a_failing_concern_is_tried_again_later_each_time():
    concern = StatusRegistry().add_concern(LocationStatus, "left")
    waits = await supervised(concern, *[Unreachable("no way")] * 8)
    assert waits.seconds == [1, 2, 4, 8, 16, 32, 60, 60]
    assert concern.phase is Phase.WELL


async def test_a_service_that_says_when_to_come_again_is_left_alone_until_then():
    concern = StatusRegistry().add_concern(LocationStatus, "left")
    asks = RateLimited("429", status=429, retry_after_s=600.0)
    past = RateLimited("429, and a date in the past", status=429, retry_after_s=0.0)
    waits = await supervised(concern, asks, asks, past)
    assert waits.seconds == [600, 600, 4]


async def test_the_same_trouble_is_told_once_and_its_end_once(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    concern = StatusRegistry().add_concern(LocationStatus, "left")
    troubles = [Unreachable(f"no answer within {seconds} s") for seconds in (1, 2, 30)]
    await supervised(concern, *troubles)
    texts = [record.message.partition("; try: ")[0] for record in caplog.records]
    assert texts == ["no answer within 1 s", "works again after 0 s, after 3 tries"]
    assert {(r.kit, r.concern) for r in caplog.records} == {("left", "location")}  # type: ignore[attr-defined]


async def test_another_trouble_is_told_with_its_way_out(caplog: pytest.LogCaptureFixture):
    concern = StatusRegistry().add_concern(FotaStatus, "left")
    await supervised(concern, AgentError("one"), AgentError("two", hint="do this"))
    assert [record.message for record in caplog.records] == ["one", "two; try: do this"]


async def test_an_unplugged_kit_is_one_trouble(caplog: pytest.LogCaptureFixture):
    concern = StatusRegistry().add_concern(LinkStatus, "left")
    waits = await supervised(
        concern, LinkLost("/dev/ttyACM0 was lost"), *[PortNotFound("no port")] * 9
    )
    assert [record.message for record in caplog.records] == ["/dev/ttyACM0 was lost"]
    assert max(waits.seconds) == 1, "a kit that is plugged in again is found within a second"


async def test_a_lost_link_is_told_by_the_link_alone(caplog: pytest.LogCaptureFixture):
    concern = StatusRegistry().add_concern(FotaStatus, "left")
    await supervised(concern, LinkLost("/dev/ttyACM0 was lost"))
    assert not caplog.records


async def test_a_defect_ends_nothing_and_shows_no_traceback(caplog: pytest.LogCaptureFixture):
    concern = StatusRegistry().add_concern(ConsoleStatus, "left")
    await supervised(concern, ZeroDivisionError("oops"))
    (record,) = caplog.records
    assert "a defect of cellagent: ZeroDivisionError" in record.message
    assert record.exc_info is None


async def test_jitter_only_lengthens_a_wait():
    concern = StatusRegistry().add_concern(LocationStatus, "left")
    waits = await supervised(concern, *[Unreachable("no way")] * 500, jitter=1.0)
    assert (waits.seconds[0], waits.seconds[-1]) == (1.25, 75.0)


@pytest.mark.parametrize(
    ("errors", "events"),
    [
        ([ZeroDivisionError("oops")] * 5, 1),
        ([ZeroDivisionError("oops"), None, ZeroDivisionError("oops")], 2),
        ([CommandTimeout("no answer"), OSError("away")], 0),
    ],
)
async def test_a_task_that_a_defect_ends_is_one_event_until_it_was_well(errors, events):
    registry, received = StatusRegistry(), []
    registry.subscribe("left", received.append)
    concern, left = registry.add_concern(LocationStatus, "left"), list(errors)

    async def work() -> None:
        while left:
            if (error := left.pop(0)) is not None:
                raise error
            concern.set_well()

    async def wait(_event: asyncio.Event, _seconds: float) -> None:
        await asyncio.sleep(0)

    await supervise(concern, work, wait=wait)
    assert [each.kind for each in received] == [AgentEventKind.WATCHDOG] * events
