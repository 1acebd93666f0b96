"""The control protocol, byte for byte as recorded, and what comes of a peer of another version."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from agent.tasks import cancel_and_wait
from at.virtual.server.pty import PtyServer
from tests.support.commands.console_window import window
from tests.support.commands.running_agent import RunningAgent, agent_on, concern_of, virtual_kit
from tests.support.harness.recorded import assert_recorded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

ROOT = Path(__file__).resolve().parents[4]
RECORDED = ROOT / "tests" / "interface" / "control.transcript"
CONSOLE = (ROOT / "tests" / "interface" / "inputs" / "console.log").read_bytes()

PROFILE = """
profile = "lab"
[profiles.lab]
base = "standin"
[profiles.lab.kit]
port = "{folder}/kit"
console_port = "{console}"
[profiles.lab.location]
interval_s = 0.0
[profiles.lab.fota]
interval_s = 0.0
"""
ARE_YOU_THERE = '> {"do": ""}'
# What differs from run to run, in the place of which the record has a word.
VARIES = (
    (r'"(pid|bytes|id|let_go_s|refusals)": [\d.]+', r'"\1": N'),
    (r"\(PID \d+\)", "(PID N)"),
    (r'"(version|time|captured|since|next_try|oldest|at)": "[^"]+"', r'"\1": "…"'),
    (r'"coming":[1-9]\d*', '"coming":N'),
    (r'("bytes": N, "counts": )\{[^}]*\}', r"\1{…}"),
    (r'("failing": )\[[^]]*\]', r"\1[…]"),
    (r'"failures": [1-9]\d*', '"failures": N'),
)


class Recorder:
    """Stands between commands and the agent, and writes down each line of both, by connection."""

    def __init__(self, folder: Path, agent: Path) -> None:
        self.said: list[list[str]] = []
        self._folder = folder
        self._agent = agent
        self._real = folder / "agent.sock"
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> asyncio.Server:
        self._agent.rename(self._real)
        return await asyncio.start_unix_server(self._connected, self._agent)

    async def stop(self, server: asyncio.Server) -> None:
        server.close()
        await cancel_and_wait(*self._connections)

    async def unheard(self, asks: Awaitable[object]) -> None:
        """Await what asks the agent, too, and forget what it said."""
        heard = len(self.said)
        await asks
        del self.said[heard:]

    def text(self) -> str:
        """Return what was said, without what varies: how often counts are told, for one."""
        lines: list[str] = []
        for said in filter(None, self.said):
            if said[0] == ARE_YOU_THERE or not said[0].startswith(">"):
                continue  # as often as something took a while; or called off before it was asked
            counts = [line for line in said if line.startswith('< {"counts"')]
            lines += [*(line for line in said if line not in counts), *counts[-1:], ""]
        text = "\n".join(lines).replace(str(self._folder), "{home}")
        for pattern, word in VARIES:
            text = re.sub(pattern, word, text)
        return text

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said: list[str] = []
        self.said.append(said)
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        from_agent, to_agent = await asyncio.open_unix_connection(self._real, limit=1 << 22)

        async def pump(mark: str, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
            while line := await source.readline():
                # What follows the answer to a lease is the modem's, and no message.
                if '"lease"' not in "".join(said[:1]) or len(said) < 2:
                    said.append(f"{mark} {line.decode().rstrip()}")
                to.write(line)
                await to.drain()
            to.write_eof()

        try:
            await asyncio.gather(pump(">", reader, to_agent), pump("<", from_agent, writer))
        except (OSError, asyncio.CancelledError):
            pass  # one side went away, or the recording is over
        finally:
            writer.close()
            to_agent.close()


@contextlib.asynccontextmanager
async def recorded(folder: Path, console: str) -> AsyncIterator[tuple[RunningAgent, Recorder]]:
    """Run the agent over a virtual kit whose console is on a port; record what is said to it."""
    await virtual_kit(folder, "kit", "--imei", "001018340000018")
    (folder / "config.toml").write_text(PROFILE.format(folder=folder, console=console))
    async with agent_on({"CELLAGENT_CONFIG": str(folder / "config.toml")}) as agent:
        await agent.until_status(_is_well)
        run = Path(os.environ["CELLAGENT_STATE_DIR"]) / "run"
        recorder = Recorder(folder, run / "lab.sock")
        server = await recorder.start()
        yield agent, recorder
        await recorder.stop(server)


def _is_well(status: dict[str, Any]) -> bool:
    """Whether the kit has its link and its console, again where a command had borrowed them."""
    return all(concern_of(status, "kit", name)["phase"] == "well" for name in ("link", "console"))


async def ask(recorder: Recorder, *lines: bytes) -> None:
    """Send lines as no command of ours would; read an answer to each."""
    reader, writer = await asyncio.open_unix_connection(recorder._agent)
    for line in lines:
        writer.write(line)
        assert await reader.readline()
    writer.close()


async def test_the_protocol_is_what_is_recorded(tmp_path: Path) -> None:
    for name in ("own", "same"):
        (tmp_path / name).mkdir()
    port = PtyServer(tmp_path / "console", lambda _data: None)
    async with recorded(tmp_path / "own", str(tmp_path / "console")) as (agent, recorder):
        for words in (
            ("status",),
            ("hold", "kit", "--", "true"),
            ("hold", "east", "--", "true"),
            ("modem", "at", "AT+CGMM"),
            ("reload",),
        ):
            await agent.run(*words)
            await recorder.unheard(agent.until_status(_is_well))
        async with window(agent.environment, "--json", "--send", "kernel version") as shown:
            before, mark, dump = CONSOLE.partition(b"[00:00:47.549,863] <err> coredump: #CD:BEGIN#")
            begin, end, rest = dump.partition(b"\r\n[00:00:47.549,863] <err> coredump: #CD:000401")
            for data, until in (
                (before, '"chunk"'),
                (mark + begin + b"\r\n[00:00:48.000,000] <inf> app: mid\r\n", "app: mid"),
                (end[2:] + rest, '"coredump"'),
                (b"x" * 70000 + b"\r\nMC:x:\r\n", '"damaged_chunk"'),
                (
                    b"[00:00:51.000,000] <err> os: >>> ZEPHYR FATAL ERROR 3: Kernel oops\r\n",
                    "fault",
                ),
            ):
                port.send(data)
                await shown.until(until)
            await agent.run("hold", "--", "true")
            await shown.until("is back")
        await recorder.unheard(agent.until_status(_is_well))  # its link, too
        for words in (
            ("outbox", "list"),
            ("outbox", "list", "--limit", "1"),
            ("outbox", "drop", "17", "18"),
            ("outbox", "drop"),
            ("outbox", "flush"),
            ("outbox", "flush", "--retry-parked"),
            ("outbox", "drop", "--parked"),
            ("outbox", "drop", "--all"),
        ):
            await agent.run(*words)
        # What failed to be sent is gone, and its trouble with it: at once, not at the next look.
        gone = agent.until_status(lambda status: status["outbox"]["phase"] == "well")
        await recorder.unheard(gone)
        await ask(recorder, b'{"do":"watch"}\n')
        await ask(recorder, b'{"do":"dance"}\n')
        await ask(recorder, b"nonsense\n")
        await ask(recorder, b'{"do":"console","kit":"kit"}\n', b"nonsense\n")
        text = recorder.text()
    port.close()
    async with recorded(tmp_path / "same", "same") as (agent, recorder):
        async with window(agent.environment, "--json", "--send", "AT+CGMR") as shown:
            await shown.until("answer")
        async with window(agent.environment, "--json", "--send", "AT%UNKNOWN=1") as shown:
            await shown.until("answer")
        text += recorder.text()
    assert_recorded(RECORDED, text.replace(str(tmp_path), "{home}"))
