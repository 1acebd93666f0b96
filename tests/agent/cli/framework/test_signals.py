"""What ends a command, whichever thread takes the signal, and how a program beside it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from agent.cli.framework import signals
from agent.cli.framework.command import run
from agent.cli.framework.signals import run_program, serve_until_stopped
from agent.errors import UsageError

# The thread takes the signal itself, once the main thread sleeps: what is left to wake that is
# nothing but the wake-up of the loop.
PROGRAM = """
import asyncio, os, signal, threading
from agent.cli.framework.command import run

main = os.getpid()

def interrupt():
    while "epoll" not in open(f"/proc/{main}/task/{main}/wchan").read():
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

async def sleep():
    threading.Thread(target=interrupt, daemon=True).start()
    await asyncio.Event().wait()

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    run(sleep())
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a thread sleeps")
def test_a_signal_that_another_thread_takes_wakes_the_loop():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr


def test_ctrl_c_cancels_nothing_amid_what_runs_as_an_answer_that_arrives() -> None:
    """The driver took the answer for a failure of its reader, and could not put back CMEE."""
    told: list[str] = []

    async def work() -> None:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def arrives() -> None:
            signal.raise_signal(signal.SIGINT)
            told.append("cancelled" if answer.done() else "waited for")

        asyncio.get_running_loop().call_soon(arrives)
        try:
            await answer
        finally:
            told.append("put back")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(work())
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == ["waited for", "put back"]


def stopped(number: int | None = None) -> asyncio.Future[int]:
    received: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    if number is not None:
        received.set_result(number)
    return received


posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


@posix
@pytest.mark.parametrize(
    ("program", "code"),
    [("import os, sys; sys.exit(os.environ['OF_BOTH'] == 'given')", 1), ("os.abort()", 134)],
)
async def test_a_program_gets_what_is_given_before_what_is_there_and_its_end_is_told(
    program: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_BOTH", "there")
    words = (sys.executable, "-c", f"import os; {program}")
    assert await run_program(words, {"OF_BOTH": "given"}, stopped()) == code


@posix
async def test_the_exit_code_of_a_program_is_left_to_who_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends of the same Ctrl-C; what looks whether it has, as Popen does, takes the code."""
    monkeypatch.setattr(subprocess.Popen, "send_signal", None)
    assert await run_program(("sleep", "600"), {}, stopped(signal.SIGINT)) == 130


@posix
@pytest.mark.parametrize(
    ("received", "sends", "code"),
    [
        (signal.SIGTERM, None, 143),
        (signal.SIGINT, signal.SIGTERM, 143),
        (signal.SIGTERM, signal.SIGCONT, 137),
    ],
    ids=["as it came", "another", "it goes on and is killed"],
)
async def test_a_program_is_sent_a_signal_and_ends_of_it_or_is_killed(
    received: int, sends: int | None, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_GRACE_S", 60.0 if code == 143 else 0.0)
    async with asyncio.timeout(60):
        assert await run_program(("sleep", "600"), {}, stopped(received), sends=sends) == code


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("no-such-program", "is it installed? `command -v no-such-program` finds it then"),
        ("sh -c true", "write sh -c true without the quotes around it"),
        ("./no-such-program", ""),  # the usual one, for a path
    ],
)
async def test_a_program_that_is_not_there_is_a_wrong_call(program: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"cannot run {program}: ") as wrong:
        await run_program((program,), {}, stopped())
    assert wrong.value.hint == hint


@posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_what_serves_ends_well_unless_it_is_interrupted(number: int, code: int) -> None:
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
    assert await serve_until_stopped((), {}) == code


@posix
async def test_a_failure_ends_what_serves_and_the_program_beside_it() -> None:
    failure = stopped(1)
    async with asyncio.timeout(60):
        assert await serve_until_stopped((), {}, failure) == 0
        assert await serve_until_stopped(("sleep", "600"), {}, failure) == 143
