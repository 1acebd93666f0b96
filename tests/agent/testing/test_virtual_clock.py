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
from tests.support.commands.user_project import UserProject


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


PATIENT = """
import asyncio
import pytest
from at.protocol.errors import AtError


async def test_a_coroutine(modem):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await modem.execute("AT+COPS=?", timeout_s=600)
    await asyncio.sleep(3600)


def test_a_plain_function(modem_sync):
    with pytest.raises(AtError):
        modem_sync.execute("AT+COPS=?", timeout_s=60)
    with pytest.raises(AtError):
        modem_sync.notice("+CEREG", timeout_s=3600)
"""
SILENT = "# transcript: 2\n> AT+COPS=?\n! silence 500\n< OK\n"


def test_a_timeout_of_a_minute_passes_at_once_on_a_replay(project: UserProject) -> None:
    """It would take more than two hours: `run` gives up after 110 s."""
    project.write("test_it.py", PATIENT)
    folder = project.folder / "transcripts" / "test_it"
    folder.mkdir(parents=True)
    for name in ("test_a_coroutine", "test_a_plain_function"):
        (folder / f"{name}.transcript").write_text(SILENT)
    assert "2 passed" in project.run("--cellagent-kit=replay")


TIMED = """
# transcript: 1
@0.0 > AT+COPS=?
@40.0 < +COPS: (2,"A","A","24201",7)
@40.1 < OK
@40.2 > AT+CFUN=1
@40.3 < OK
@160.3 < +CEREG: 5
@165.0 > AT+CESQ
@165.5 < +CESQ: 99,99,255,255,19,47
@165.5 < OK
"""
ELAPSED = """
import asyncio

import pytest
from at.protocol.errors import CommandTimeout


async def test_a_coroutine(modem):
    loop, notices = asyncio.get_running_loop(), modem.notices()
    began = loop.time()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await modem.execute("AT+COPS=?", timeout_s=60)
    assert 30 <= loop.time() - began < 40
    assert (await modem.execute("AT+CFUN=1")).ok
    began = loop.time()
    assert (await anext(notices)).line == "+CEREG: 5"
    assert 120 <= loop.time() - began < 130


def test_waits_as_long(modem_sync):
    began = modem_sync.time()
    assert modem_sync.execute("AT+COPS=?", timeout_s=60).ok
    assert 40 <= modem_sync.time() - began < 50
    assert modem_sync.execute("AT+CFUN=1").ok
    with pytest.raises(CommandTimeout):
        modem_sync.notice("+CEREG", timeout_s=60)
    assert modem_sync.execute("AT+CESQ", timeout_s=2).ok, "it does not wait for the notice"
    assert 100 <= modem_sync.time() - began < 110
    assert modem_sync.notice("+CEREG", timeout_s=1) == "+CEREG: 5"
"""


def test_recorded_times_pass_on_the_virtual_clock(project: UserProject) -> None:
    """More than four minutes are recorded: `run` gives up after 110 s."""
    project.write("test_it.py", ELAPSED)
    folder = project.folder / "transcripts" / "test_it"
    folder.mkdir(parents=True)
    all_of_it = TIMED.lstrip()
    (folder / "test_waits_as_long.transcript").write_text(all_of_it)
    (folder / "test_a_coroutine.transcript").write_text(all_of_it.partition("@165.0")[0])
    assert "2 passed" in project.run("--cellagent-kit=replay")
