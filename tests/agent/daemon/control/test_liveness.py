"""An agent that is stopped, or whose event loop hangs, is told as one by whoever asks it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from agent.daemon.control import liveness
from agent.daemon.control.socket import control_socket_of
from agent.files.private_files import make_private_folder
from tests.support.commands.command_line import cellagent
from tests.support.commands.console_window import PATIENCE_S, window
from tests.support.commands.running_agent import RunningAgent, concern_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

WORDS = [
    ("status",),
    ("status", "--watch"),
    ("reload",),
    ("hold", "--", "true"),
    ("modem", "at", "AT"),
    ("console",),
    ("ports",),
]
HANGING = """
import asyncio, sys, time

async def main():
    await asyncio.start_unix_server(lambda *_: None, sys.argv[1], backlog=int(sys.argv[2]))
    print(flush=True)
    time.sleep(1000)

asyncio.run(main())
"""


async def test_each_command_tells_a_stopped_agent_and_works_once_it_goes_on(
    agent: RunningAgent,
) -> None:
    agent.process.send_signal(signal.SIGSTOP)
    for done in await asyncio.gather(*(agent.run(*words) for words in WORDS)):
        assert done.code == 3, done.err
        assert f"(PID {agent.process.pid}) is stopped" in done.err
        assert f"kill -CONT {agent.process.pid}" in done.err
    agent.process.send_signal(signal.SIGCONT)
    # It may first give the kit to a hold of before, whose program has gone.
    async with asyncio.timeout(PATIENCE_S):
        while (await agent.run("modem", "at", "AT")).code != 0:
            pass


async def test_a_stopped_agent_is_told_without_a_wait_for_its_answer(agent: RunningAgent) -> None:
    socket = control_socket_of(Path(os.environ["CELLAGENT_STATE_DIR"]), "bench")
    agent.process.send_signal(signal.SIGSTOP)
    await asyncio.to_thread(os.waitid, os.P_PID, agent.process.pid, os.WSTOPPED | os.WNOWAIT)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(liveness.NotAnswering, match="is stopped"):
            await liveness.answers(socket, 1e6)


def test_a_command_waits_less_than_three_seconds_for_an_agent_that_hangs() -> None:
    assert liveness.SILENCE_S + liveness.ANSWER_S <= 2.5  # half a second is its own start


async def test_a_window_says_that_the_agent_is_stopped_and_that_it_answers_again(
    agent: RunningAgent,
) -> None:
    async with window(agent.environment) as shown:
        agent.process.send_signal(signal.SIGSTOP)
        assert "kill -CONT" in await shown.until("is stopped")
        agent.process.send_signal(signal.SIGCONT)
        await shown.until("answers again")


@pytest.mark.parametrize("words", [("status", "--watch", "--json"), ("console", "--json")])
async def test_a_command_ends_as_soon_as_its_reader_has_gone(
    agent: RunningAgent, words: tuple[str, ...]
) -> None:
    reads, writes = os.pipe()
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", *words),
        env={**os.environ, **agent.environment},
        stdout=writes,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writes)
    if words[0] == "console":  # nothing is printed until the kit says something
        assert command.stderr is not None
        await command.stderr.readuntil(b"Ctrl-C ends")
    else:
        await asyncio.to_thread(os.read, reads, 1)
    os.close(reads)
    assert await asyncio.wait_for(command.wait(), PATIENCE_S) == 0


async def test_who_borrows_the_modem_is_told_why_it_answers_no_more(agent: RunningAgent) -> None:
    borrower = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "modem", "term"),
        env={**os.environ, **agent.environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    await agent.until_status(
        lambda s: "lent to" in (concern_of(s, "kit", "link").get("busy_with") or "")
    )
    agent.process.send_signal(signal.SIGSTOP)
    assert borrower.stdout is not None
    output = await asyncio.wait_for(borrower.stdout.read(), PATIENCE_S)
    await borrower.wait()
    assert borrower.returncode == 3
    assert b"is stopped" in output
    assert b"kill -CONT" in output


@pytest.mark.parametrize("backlog", [100, 0])
async def test_an_event_loop_that_is_blocked_is_told(backlog: int) -> None:
    socket = control_socket_of(Path(os.environ["CELLAGENT_STATE_DIR"]), "custom")
    make_private_folder(socket.path.parent)
    hanging = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HANGING, str(socket.path), str(backlog)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert hanging.stdout is not None
    await hanging.stdout.readline()
    waiting = [await socket.connect() for _ in range(1 - min(1, backlog))]
    try:
        done = await cellagent("status", "--json")
    finally:
        hanging.kill()
        await hanging.wait()
        for _, writer in waiting:
            writer.close()
    assert done.code == 3
    error = done.lines[-1]["error"]
    assert error["kind"] == "not-answering"
    assert "hangs" in error["message"]
    assert "`cellagent run`" in error["try"]


async def test_an_agent_that_is_slow_is_waited_for() -> None:
    socket = control_socket_of(Path(os.environ["CELLAGENT_STATE_DIR"]), "custom")
    make_private_folder(socket.path.parent)
    asked = 0
    enough = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        if b"status" in await reader.readline():
            await enough.wait()
            writer.write(b'{"error": {"exit": 9, "kind": "done", "message": "", "try": ""}}\n')
        else:
            asked += 1
            if asked > 1:
                enough.set()
        writer.close()

    server = await asyncio.start_unix_server(answer, socket.path)
    done = await cellagent("status", "--json")
    server.close()
    assert done.code == 9
    assert asked > 1
