"""Time on a replay: it jumps while nothing real is awaited, and only then."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
import weakref

from agent.testing.loop_thread import LoopThread
from agent.testing.virtual_clock import virtual_clock


async def test_a_minute_takes_no_time_and_timers_keep_their_order() -> None:
    seen: list[int] = []
    loop = asyncio.get_running_loop()
    began, began_for_all = loop.time(), time.monotonic()
    with virtual_clock(loop):
        for seconds in (3600, 60, 86_400 * 2):
            loop.call_later(seconds, seen.append, seconds)
        try:
            async with asyncio.timeout(60 * 61):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append(61)
        await asyncio.sleep(86_400 * 2)
    assert seen == [60, 3600, 61, 86_400 * 2]
    assert loop.time() - began > 86_400 * 2, "what was is not undone"
    assert time.monotonic() - began_for_all < 3600


async def test_a_socket_and_a_thread_are_waited_for_in_real_time() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    release = threading.Event()
    with virtual_clock(loop), ours, theirs:
        ours.setblocking(False)
        # Whoever answers does it when time has had every reason to jump.
        threading.Timer(0.2, theirs.send, (b"x",)).start()
        async with asyncio.timeout(60):
            assert await loop.sock_recv(ours, 1) == b"x"
        threading.Timer(0.2, release.set).start()
        async with asyncio.timeout(60):
            assert await asyncio.to_thread(release.wait, 60)
        before = loop.time()
        await asyncio.sleep(60)
        assert loop.time() - before >= 60


def test_time_stands_still_for_plain_functions_between_their_calls() -> None:
    thread = LoopThread()
    fired = threading.Event()

    async def arm() -> float:
        thread.loop.call_later(3600, fired.set)
        return thread.loop.time()

    async def wait(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return thread.loop.time()

    for _ in range(3):  # one clock after another on the same loop
        with thread.virtual_clock():
            armed = thread.call(arm())
            assert not fired.wait(0.05)
            assert thread.call(wait(0)) - armed < 3600
            assert thread.call(wait(3601)) - armed >= 3600
            assert fired.is_set()
            fired.clear()
    thread.close()


def test_a_closed_loop_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        loop = asyncio.new_event_loop()
        with virtual_clock(loop):
            loop.run_until_complete(asyncio.sleep(60))
        loop.close()
        left = weakref.ref(loop)
        del loop
        assert left() is None
    finally:
        gc.enable()
