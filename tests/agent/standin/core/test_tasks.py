"""The end of tasks: awaited, whatever they raise."""

from __future__ import annotations

import asyncio

from agent.standin.core.connections import cancel_and_wait


async def test_tasks_have_ended_and_what_they_raise_is_dropped() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("forever")

    async def fails() -> None:
        raise ZeroDivisionError

    tasks = [asyncio.create_task(forever()), asyncio.create_task(fails())]
    await asyncio.sleep(0)
    await cancel_and_wait(*tasks)
    assert ended == ["forever"]
    assert all(task.done() for task in tasks)
