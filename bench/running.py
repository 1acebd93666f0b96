"""The agent at rest and at work, and many virtual kits: memory, processor, time to the disk."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import serial
from pty_modem import ANSWERS, serving
from trials.measure import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "running"
IDLE_MB, KIT_MB, CPU_PERCENT, LATENCY_MS = 10.0, 0.5, 0.5, 20.0
KITS = 9
VIRTUAL_KITS, VIRTUAL_KITS_MB = 64, 50.0
_STAMP = b"STAMP"

# The same libraries, one client, an event loop that rests.
CONTROL = """
import asyncio, agent.daemon.agent
from agent.config import load
from agent.wiring.service_client import connect
async def main():
    client = connect(load("standin"), unattended=True)
    print('{"ready": true}', flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""

MODEMS = """
import asyncio, json, sys
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.server.runner import ModemRunner, make_modem
from at.virtual.server.tcp import TcpServer
async def main():
    ports, kept = [], []
    for number in range(int(sys.argv[1])):
        options = VirtualOptions(imei=f"001018340{number:05d}", instant=True)
        runner = ModemRunner(make_modem(options))
        server = TcpServer(runner.receive)
        await server.listen("127.0.0.1", 0)
        runner.attach(Port.AT, server.send)
        runner.start()
        kept.append((runner, server))
        ports.append(server.port)
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def started(stack: ExitStack, *command: str, environment: dict[str, str] | None = None) -> Any:
    """Start a program of ours; return its process and its first line, decoded."""
    process = subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    stack.callback(process.wait, 10)
    stack.callback(process.terminate)
    return process, json.loads(process.stdout.readline())


def private_mb(pid: int) -> float:
    """Return the memory that the process shares with no other."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if "Private_" in line) / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def profile(folder: Path, ports: list[str]) -> dict[str, str]:
    """Write a profile with these kits whose services are not there."""
    lines = ['profile = "bench"', '[profiles.bench]\nbase = "custom"', "[profiles.bench.location]"]
    lines.append("interval_s = 0")
    for number, port in enumerate(ports):
        lines += [f"[profiles.bench.kits.kit{number}]", f"port = {json.dumps(port)}"]
    (folder / "config.toml").write_text("\n".join(lines))
    return {
        "CELLAGENT_CONFIG": str(folder / "config.toml"),
        "CELLAGENT_STATE_DIR": str(folder / "state"),
    }


def at_rest(count: int, settle_s: float, watch_s: float) -> tuple[float, float]:
    """Return memory (MB) and processor (percent) of an agent with so many kits."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _, ports = started(stack, "-c", MODEMS, str(count))
        process, _ = started(
            stack, "-m", "agent", "run", "--json", environment=profile(folder, ports)
        )
        time.sleep(settle_s)
        before = cpu_s(process.pid)
        time.sleep(watch_s)
        used = cpu_s(process.pid) - before
        return private_mb(process.pid), 100 * used / watch_s


def control_mb() -> float:
    with ExitStack() as stack:
        process, _ = started(stack, "-c", CONTROL)
        time.sleep(0.5)
        return private_mb(process.pid)


def virtual_kits_mb(*count: str) -> float:
    """Return the memory of `modem virtual` with terminals, each of which has answered a client."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        words = ("-m", "agent", "modem", "virtual", "--pty", f"{folder}/kit", *count)
        process, ready = started(stack, *words)
        for port in ready.get("ports") or [ready["port"]]:
            with serial.Serial(port, timeout=30) as client:
                client.write(b"AT\r")
                assert client.read_until(b"OK\r\n") == b"OK\r\n"
        return private_mb(process.pid)


def printing(master: int) -> None:
    """Answer commands; then print a chunk with the time in it every 10 ms."""
    os.set_blocking(master, False)
    buffer, due = b"", time.monotonic() + 1.0
    while True:
        with suppress(BlockingIOError):
            buffer += os.read(master, 4096)
        while b"\r" in buffer:
            command, _, buffer = buffer.partition(b"\r")
            os.write(master, ANSWERS.get(command, b"\r\nERROR\r\n"))
        if time.monotonic() >= due:
            due = time.monotonic() + 0.01
            chunk = b"\x08\x02" + _STAMP + struct.pack("<d", time.monotonic()) + b"\0\0"
            os.write(master, b"MC:" + base64.b64encode(chunk) + b":\r\n")
        time.sleep(0.001)


def latencies_ms(count: int) -> list[float]:
    """Return how long each chunk took from the port to the disk."""
    from agent.config import load
    from agent.daemon.agent import Agent

    latencies: list[float] = []

    async def work(agent: Any, ready: asyncio.Event) -> None:
        await ready.wait()
        outbox = agent.outbox
        put: Callable[..., Any] = outbox.aput

        async def timed(items: Any) -> Any:
            receipt = await put(items)
            now = time.monotonic()
            for item in items:
                offset = item.body.index(_STAMP) + len(_STAMP)
                sent_at = struct.unpack_from("<d", item.body, offset)[0]
                latencies.append((now - sent_at) * 1000)
            if len(latencies) >= count:
                agent.stop()
            return receipt

        outbox.aput = timed

    async def main(port: str) -> None:
        agent = Agent(lambda: load("standin", port=port))
        ready = asyncio.Event()
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            group.create_task(work(agent, ready))
            await agent.run(ready.set)

    with tempfile.TemporaryDirectory() as folder, serving(printing, modem_cpu=1) as port:
        Path(folder, "empty.toml").touch(mode=0o600)
        settings = {"CELLAGENT_STATE_DIR": folder, "CELLAGENT_CONFIG": f"{folder}/empty.toml"}
        with patch.dict(os.environ, settings):  # the benchmarks after this one start programs too
            asyncio.run(main(port))
    return latencies


def run(smoke: bool) -> Iterator[Row]:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if not Path("/proc/self/smaps_rollup").exists():
        yield Row("the agent at rest", 0.0, "MB", IDLE_MB, skipped="needs Linux's /proc")
        return
    settle_s, watch_s = (2.0, 3.0) if smoke else (5.0, 60.0)
    control = control_mb()
    one, percent = at_rest(1, settle_s, watch_s)
    many, _ = at_rest(KITS, settle_s, 0.1)
    yield Row(
        "idle with one kit, over a control", one - control, "MB", IDLE_MB,
        f"the same libraries and one client {control:.1f} MB",
    )  # fmt: skip
    yield Row("each further kit", (many - one) / (KITS - 1), "MB", KIT_MB, f"{KITS} kits")
    yield Row("idle with one kit", percent, "% of a core", CPU_PERCENT, f"over {watch_s:g} s")
    single = virtual_kits_mb()
    yield Row(
        f"{VIRTUAL_KITS} virtual kits with terminals",
        virtual_kits_mb("--count", str(VIRTUAL_KITS)), "MB", VIRTUAL_KITS_MB,
        f"one alone {single:.1f} MB, {VIRTUAL_KITS} of those {VIRTUAL_KITS * single:.0f} MB",
    )  # fmt: skip
    times = latencies_ms(50 if smoke else 1000)
    worst = f"median of {len(times)}; the slowest {max(times):.1f} ms"
    yield Row("chunk line to outbox", statistics.median(times), "ms", LATENCY_MS, worst)
