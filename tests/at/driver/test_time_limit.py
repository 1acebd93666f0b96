from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from at.driver.time_limit import TimeLimit
from tests.support.harness import virtual_time

WHOLE = st.integers(1, 60)


@given(commands=st.lists(st.tuples(WHOLE, WHOLE, st.integers(0, 90)), max_size=12))
def test_a_command_is_over_at_its_limit_whatever_the_limits_before_it(
    commands: list[tuple[int, int, int]],
) -> None:
    """Each command: its limit, the time of its answer, and the pause behind it, in seconds."""

    async def session() -> None:
        loop, limit = asyncio.get_running_loop(), TimeLimit()
        for limit_s, answer_s, pause_s in commands:
            over = asyncio.Event()
            began = loop.time()
            limit.start(loop, limit_s, over.set)
            # A sixteenth of a second before the limit or behind it, never at it.
            answer = answer_s + 1 / 16
            try:
                async with asyncio.timeout(answer):
                    await over.wait()
            except TimeoutError:
                assert answer < limit_s
            else:
                assert loop.time() - began == limit_s < answer
            limit.stop()
            over.clear()
            await asyncio.sleep(pause_s)
            assert not over.is_set()
        limit.cancel()

    virtual_time.run(session())


def test_what_is_cancelled_leaves_no_timer_in_the_loop() -> None:
    async def session() -> None:
        limit, over = TimeLimit(), asyncio.Event()
        limit.start(asyncio.get_running_loop(), 1.0, over.set)
        limit.cancel()
        await asyncio.sleep(2.0)
        assert not over.is_set()

    virtual_time.run(session())
