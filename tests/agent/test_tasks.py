from __future__ import annotations

import asyncio

import pytest

from agent.tasks import cancel_and_wait, first_of, wait_for_event


async def forever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("forever")


async def test_the_first_that_ends_ends_the_others_and_its_error_is_raised():
    ended: list[str] = []

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await first_of(forever(ended), fails())
    assert ended == ["forever"]


async def test_a_cancelled_group_leaves_no_task_behind():
    ended: list[str] = []
    group = asyncio.ensure_future(first_of(forever(ended), forever(ended)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await cancel_and_wait(group)
    assert ended == ["forever", "forever"]
    assert group.cancelled()


async def test_a_wait_ends_with_its_event_or_with_its_time():
    event = asyncio.Event()
    await wait_for_event(event, 0.0)
    assert not event.is_set()
    waiting = asyncio.ensure_future(wait_for_event(event, 3600.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    event.set()
    await waiting
