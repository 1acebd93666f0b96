"""`cellagent console` while `cellagent run` holds the kit: through the agent, on real terminals."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.config.profile import KitSettings
from agent.console.line_classifier import ConsoleCounts
from agent.daemon.control.console import show_console
from agent.daemon.kit.console_windows import ConsoleWatchers
from agent.daemon.snapshot import ConsoleStatus, LinkStatus
from agent.daemon.status import StatusRegistry
from at.virtual.console import export_lines
from at.virtual.server.pty import PtyServer
from tests.support.commands.console_window import PATIENCE_S, window
from tests.support.commands.running_agent import (
    RunningAgent,
    agent_on,
    concern_of,
    kit_to_crash,
    virtual_kit,
)
from tests.support.outbox.outboxes import bodies, outbox

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

LINE = "[00:00:01.000,000] <inf> app: number {}\r\n"


def profile(folder: Path, **kit: str) -> dict[str, str]:
    """Write a profile whose services nobody serves: the console needs none."""
    keys = {"port": str(folder / "kit"), **kit}
    lines = ['profile = "lab"', '[profiles.lab]\nbase = "standin"', "[profiles.lab.kit]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in keys.items()]
    lines += ["[profiles.lab.location]", "interval_s = 0.0"]
    (folder / "config.toml").write_text("\n".join(lines))
    return {"CELLAGENT_CONFIG": str(folder / "config.toml")}


class Console:
    """The console of a kit on a terminal of its own, FOLDER/console."""

    def __init__(self, folder: Path) -> None:
        self.typed = bytearray()
        self.heard = asyncio.Event()
        self._port = PtyServer(folder / "console", self._receive)

    def _receive(self, data: bytes) -> None:
        self.typed += data
        self.heard.set()

    def say(self, numbers: range) -> None:
        """Print a line for each number, at most a thousand: what the terminal keeps for us."""
        self._port.send("".join(LINE.format(number) for number in numbers).encode())

    def print(self, lines: list[str]) -> None:
        """Print lines."""
        self._port.send("".join(f"{line}\r\n" for line in lines).encode())

    def close(self) -> None:
        self._port.close()


@contextlib.asynccontextmanager
async def agent_with_console(folder: Path) -> AsyncIterator[tuple[RunningAgent, Console]]:
    """Run the agent over a virtual kit whose console has a port of its own."""
    console = Console(folder)
    await virtual_kit(folder)
    try:
        async with agent_on(profile(folder, console_port=str(folder / "console"))) as agent:
            await agent.until("kit", "console", "well")
            yield agent, console
    finally:
        console.close()


def summary(lines: list[str]) -> dict[str, int]:
    """Return what a window with --json counted."""
    (found,) = [json.loads(line) for line in lines if line.startswith('{"summary"')]
    counts: dict[str, int] = found["summary"]
    return counts


def logged(lines: list[str]) -> list[str]:
    """Return the texts of the log lines that a window with --json showed."""
    shown = [json.loads(line) for line in lines if line.startswith("{")]
    return [each["text"] for each in shown if each.get("type") == "log"]


async def test_windows_show_lines_and_a_crash_that_the_agent_delivers(tmp_path: Path):
    where = profile(tmp_path)
    saved = tmp_path / "saved"
    async with kit_to_crash(tmp_path) as kit, agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        async with (
            window(where, "--json") as program,
            window(where, "--level", "error", "--save", str(saved), "--forward") as person,
        ):
            kit.crash()
            dump = json.loads(await program.until('"coredump"'))
            await person.until("core dump, complete:")
            await person.until("** core dump: complete")
            assert await person.close() == 130
            assert await program.close() == 130
        assert dump["status"] == "complete"
        assert (saved / "coredump.bin").stat().st_size == dump["bytes"]
        assert (saved / "coredump.bin").stat().st_mode & 0o777 == 0o600
        assert any("--forward adds nothing" in line for line in person.lines)
        assert not [line for line in person.lines if "<inf>" in line]
        assert summary(program.lines)["dumps"] == 1
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "kit", "console")["dumps"] == 1
        assert status["outbox"]["waiting"] >= 2, "the agent keeps what it shows"


async def test_a_window_that_does_not_read_holds_nobody_up_and_counts_what_it_missed(
    tmp_path: Path,
):
    many = 20_000
    async with agent_with_console(tmp_path) as (agent, console):
        async with window(agent.environment, "--json") as stalled:
            async with window(agent.environment, "--json") as other:
                stalled.stall()
                for first in range(0, many, 1000):
                    console.say(range(first, first + 1000))
                    await other.until(f"number {first + 999}")
                assert logged(other.lines) == [f"number {number}" for number in range(many)]
            done = await agent.run("modem", "at", "AT+CGMR", "--port", str(tmp_path / "kit"))
            assert done.code == 0, "the agent does what it is asked"
            stalled.go_on()
            await stalled.until(f"number {many - 1}")
            await stalled.close()
        shown = [json.loads(line) for line in stalled.lines if line.startswith("{")]
        lost = sum(each["count"] for each in shown if each.get("type") == "lost")
        assert lost > 0
        assert lost + len(logged(stalled.lines)) == many
        assert summary(stalled.lines)["not_shown"] == lost
        assert summary(stalled.lines)["lines"] == many


async def test_the_agent_ends_in_time_though_a_window_does_not_read(tmp_path: Path):
    async with (
        agent_with_console(tmp_path) as (agent, console),
        window(agent.environment) as stalled,
        window(agent.environment) as other,
    ):
        stalled.stall()
        for first in range(0, 12_000, 1000):
            console.say(range(first, first + 1000))
            await other.until(f"number {first + 999}")
        assert await agent.stop() == 0


async def test_a_window_says_that_the_kit_is_unplugged_and_goes_on_when_it_is_back(tmp_path: Path):
    where = profile(tmp_path)
    kit = await virtual_kit(tmp_path)
    async with agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        async with window(where) as shown:
            await kit.end()
            assert "kit" in await shown.until("went away")
            kit = await virtual_kit(tmp_path)
            await shown.until("is back")
            holder = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agent", "hold"), env={**os.environ, **where}
            )
            await shown.until("let go of it for")
            # One that is opened now keeps off the port, too.
            async with window(where) as later:
                await later.until("let go of it for")
                holder.kill()
                await later.until("is back")
            await shown.until("is back")
            await holder.wait()


async def test_a_window_outlives_the_agent_and_shows_what_the_next_one_hears(tmp_path: Path):
    console = Console(tmp_path)
    await virtual_kit(tmp_path)
    where = profile(tmp_path, console_port=str(tmp_path / "console"))
    async with contextlib.AsyncExitStack() as stack:
        agent = await stack.enter_async_context(agent_on(where))
        await agent.until("kit", "console", "well")
        shown = await stack.enter_async_context(window(where, "--json"))
        console.say(range(1, 2))
        await shown.until("number 1")
        agent.process.kill()
        await shown.until("waiting for it to run again")
        again = await stack.enter_async_context(agent_on(where))
        await shown.until("Ctrl-C ends")
        await again.until("kit", "console", "well")
        console.say(range(2, 3))
        await shown.until("number 2")
        await shown.close()
        assert summary(shown.lines)["lines"] == 2
        assert await again.stop() == 0
    console.close()


async def test_lines_are_typed_at_the_console_by_the_agent(tmp_path: Path):
    async with agent_with_console(tmp_path) as (agent, console):
        async with window(agent.environment, "--send", "kernel version", "--send", "mflt export"):
            async with asyncio.timeout(PATIENCE_S):
                while b"export\r" not in console.typed:
                    console.heard.clear()
                    await console.heard.wait()
        assert console.typed == b"kernel version\rmflt export\r"


async def test_a_command_that_is_typed_at_the_at_port_is_answered_in_its_window_alone(
    tmp_path: Path,
):
    where = profile(tmp_path)
    await virtual_kit(tmp_path)
    async with agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        async with window(where, "--json") as other:
            async with window(where, "--json", "--send", "AT+CGMR") as shown:
                answer = json.loads(await shown.until("answer"))
            assert answer == {"type": "answer", "lines": ["mfw_nrf91x1_2.0.4", "OK"]}
            assert (await agent.run("modem", "at", "AT%XTEMP?", "AT+CGMM")).code == 0
            await other.close()
            assert logged(other.lines) == [], "nobody else's conversation is shown"


async def test_what_a_window_types_that_does_not_read_waits_until_it_does():
    """Else all answers wait in the agent's memory."""
    registry = StatusRegistry()
    link = SimpleNamespace(concern=registry.add_concern(LinkStatus, "kit"))
    console = SimpleNamespace(
        concern=registry.add_concern(ConsoleStatus, "kit"),
        watchers=ConsoleWatchers(ConsoleCounts()),
        port="",
    )
    typed: list[str] = []
    is_read, reader = asyncio.Event(), asyncio.StreamReader()
    is_read.set()

    async def type_line(line: str) -> list[str]:
        typed.append(line)
        is_read.clear()
        return ["OK"]

    kit: Any = SimpleNamespace(
        name="kit", settings=KitSettings(port="virtual:"), link=link, console=console
    )
    kit.type_line = type_line
    writer: Any = SimpleNamespace(write=lambda _data: None, drain=is_read.wait)
    reader.feed_data(b'{"type": "AT"}\n' * 3)
    reader.feed_eof()
    showing = asyncio.create_task(show_console(kit, registry, reader, writer))
    for expected in (1, 2, 3):
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(typed) == expected
        is_read.set()
    await showing


async def test_a_kit_without_a_console_has_no_window(tmp_path: Path):
    await virtual_kit(tmp_path)
    async with agent_on(profile(tmp_path, console_port="none")) as agent:
        await agent.until("kit", "link", "well")
        done = await agent.run("console")
        assert (done.code, "no console" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    "typed", [b"nonsense\n", b"[]\n", b'{"type":1}{\n', b"x" * 200000], ids=range(4)
)
async def test_a_window_that_says_nonsense_is_closed_and_disturbs_nobody(
    tmp_path: Path, typed: bytes
):
    async with agent_with_console(tmp_path) as (agent, console):
        place = next((Path(os.environ["CELLAGENT_STATE_DIR"]) / "run").glob("*.sock"))
        assert place.stat().st_mode & 0o777 == 0o600
        reader, writer = await asyncio.open_unix_connection(place)
        writer.write(b'{"do":"console","kit":"kit"}\n')
        assert json.loads(await reader.readline())["ok"]
        writer.write(typed)
        async with asyncio.timeout(PATIENCE_S):
            told: list[Any] = [json.loads(line) async for line in reader]
        assert told[-1]["error"]["kind"] == "usage"
        writer.close()
        async with window(agent.environment) as shown:
            console.say(range(7, 8))
            await shown.until("number 7")


def bodies_on_disk(folder: Path) -> set[bytes]:
    """Return what is in the agent's outbox, which it locks: in a copy of its files in `folder`."""
    (kept,) = (Path(os.environ["CELLAGENT_STATE_DIR"]) / "outbox").iterdir()
    shutil.copytree(kept, folder / "state")
    with outbox(folder) as box:
        lanes = box.transact(lambda store: list(store.index.lanes))  # also what waits for an id
        return {body for device, kind in lanes for body in bodies(box, kind, device)}


@pytest.mark.parametrize("kill_after", [1, 30, 200])
async def test_what_a_window_saw_is_on_disk_also_after_a_kill(tmp_path: Path, kill_after: int):
    async with agent_with_console(tmp_path) as (agent, console):
        place = next((Path(os.environ["CELLAGENT_STATE_DIR"]) / "run").glob("*.sock"))
        reader, writer = await asyncio.open_unix_connection(place)
        writer.write(b'{"do":"console","kit":"kit"}\n')
        assert json.loads(await reader.readline())["ok"]
        seen: set[bytes] = set()

        async def see() -> None:
            message = json.loads(await reader.readuntil(b"\n"))
            if message.get("is") == "ChunkLine":
                seen.add(base64.b64decode(message["item"]["chunk"]))

        async with asyncio.timeout(PATIENCE_S):
            for number in range(kill_after):
                console.print(export_lines(b"\x02 message %d" % number))
                while len(seen) <= number:
                    await see()
                if number % 10 == 0:
                    assert seen <= bodies_on_disk(tmp_path / f"{number}"), (
                        "it is there at the moment that it is shown"
                    )
            for number in range(kill_after, kill_after + 100):
                console.print(export_lines(b"\x02 message %d" % number))
            await see()
            agent.process.kill()
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    await see()
        await agent.process.wait()
        writer.close()
        assert kill_after <= len(seen)
        assert seen <= bodies_on_disk(tmp_path / "killed")
