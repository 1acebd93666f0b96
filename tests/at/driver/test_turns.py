from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from at.driver.turns import Turns


@given(cancelled=st.sets(st.integers(0, 5)), steps=st.integers(0, 12))
def test_turns_come_in_order_one_at_a_time_whoever_is_cancelled_and_when(
    cancelled: set[int], steps: int
) -> None:
    async def session() -> None:
        turns = Turns()
        had: list[int] = []

        async def work(number: int) -> None:
            async with turns:
                assert turns.taken
                had.append(number)
                await asyncio.sleep(0)
                assert had[-1] == number, "two had a turn at once"

        tasks = [asyncio.create_task(work(number)) for number in range(6)]
        for _ in range(steps):
            await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert had == sorted(had)
        assert {number for number in range(6) if ended[number] is None} <= set(had)
        assert set(range(6)) - cancelled <= set(had)
        assert not turns.taken

    asyncio.run(session())


async def test_all_who_wait_are_let_through_at_once_though_the_turn_is_not_over() -> None:
    turns = Turns()
    through = []

    async def wait(number: int) -> None:
        async with turns:
            through.append(number)

    async with turns:
        tasks = [asyncio.create_task(wait(number)) for number in range(3)]
        await asyncio.sleep(0)
        assert through == []
        turns.let_all_through()
        await asyncio.gather(*tasks)
        assert through == [0, 1, 2]
