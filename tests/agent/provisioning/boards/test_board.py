"""A board is recognised by its IMEI, and a command that was begun ends before its task does."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from agent.provisioning.boards.board import BoardSwapped, uninterrupted
from tests.support.provisioning.virtual_tray import Tray


async def test_another_imei_on_the_port_is_named_with_what_was_done(tmp_path: Path) -> None:
    tray = Tray(tmp_path)
    [location] = tray.locations(1)
    async with tray.open(location) as board:
        imei = (await board.read()).imei
        await board.require_same("the write")
        tray.transports[location.port].modem.kit.saved.imei = "004401000000153"
        words = f"IMEI {imei} became 004401000000153 at the write"
        with pytest.raises(BoardSwapped, match=words) as told:
            await board.require_same("the write")
    assert "put the board back" in told.value.hint


async def test_work_that_is_cancelled_is_done_before_its_task_ends() -> None:
    begun, may_end, steps = asyncio.Event(), asyncio.Event(), []

    async def command() -> None:
        begun.set()
        await may_end.wait()
        steps.append("done")

    task = asyncio.create_task(uninterrupted(command()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["done"]


async def test_work_that_fails_after_a_second_cancel_is_nothing_to_print() -> None:
    printed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context))
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def command() -> None:
        begun.set()
        await may_end.wait()
        raise ZeroDivisionError

    task = asyncio.create_task(uninterrupted(command()))
    await begun.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    may_end.set()
    await asyncio.sleep(0)
    gc.collect()
    assert not printed


async def test_work_that_is_not_cancelled_gives_its_result_or_its_error() -> None:
    async def number() -> int:
        return 7

    async def failure() -> int:
        raise ZeroDivisionError

    assert await uninterrupted(number()) == 7
    with pytest.raises(ZeroDivisionError):
        await uninterrupted(failure())
