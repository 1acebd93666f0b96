"""`cellagent run`, the stand-in and virtual modems, each in a process of its own.

    async with agent_on(folder, kits={"left": kit}) as agent:
        await agent.until("left", "link", "well")
        status = await agent.status()

Waits end with what is waited for: a line of the agent, or a change of its status. What `serve`
started and is still there when the test is over is ended by a fixture (`end_all`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from at.virtual.options import VirtualOptions
from at.virtual.server.runner import ModemRunner
from tests.support.commands.command_line import Done, cellagent
from tests.support.location.moving_kit import kit_on

PATIENCE_S = 90.0
_served: list[Served] = []


@dataclass
class Served:
    """A process that printed that it is ready."""

    process: asyncio.subprocess.Process
    ready: dict[str, Any]

    async def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        await self.process.wait()

    async def end(self) -> int:
        """End it as its user would."""
        if self.process.returncode is None:
            self.process.terminate()
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)


async def end_all() -> None:
    """End whatever `serve` started since this was last called."""
    ending = list(_served)
    _served.clear()
    await asyncio.gather(*(served.end() for served in ending))


async def serve(*words: str, environment: Mapping[str, str] | None = None) -> Served:
    """Start a command that prints {"ready":…} on its first line; it is ended with the test."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", *words),
        env={**os.environ, **(environment or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    served = Served(process, {})
    _served.append(served)
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
    served.ready = json.loads(line)
    assert served.ready["ready"]
    return served


async def virtual_kit(folder: Path, name: str = "kit", *options: str) -> Served:
    """Serve a virtual modem on FOLDER/NAME, with a companion on FOLDER/NAME-wifi."""
    for link in (folder / name, folder / f"{name}-wifi"):
        link.unlink(missing_ok=True)  # of one that was killed: it may lead to another's terminal
    return await serve(
        *("modem", "virtual", "--instant", "--pty", str(folder / name)),
        *("--companion", str(folder / f"{name}-wifi"), "--state", str(folder / f"{name}.state")),
        *options,
    )


def kit_to_crash(
    folder: Path, *faults: str, name: str = "kit", imei: str = "", firmware: str = "", **served: Any
) -> contextlib.AbstractAsyncContextManager[ModemRunner]:
    """Serve a virtual kit on FOLDER/NAME in this loop: `crash()` crashes it when it is heard."""
    options = VirtualOptions(instant=True, faults=faults, imei=imei, firmware=firmware)
    return kit_on(folder / name, folder / f"{name}-wifi", options, **served)


def write_profile(
    folder: Path, cloud: Mapping[str, Any], kits: Mapping[str, Mapping[str, Any]], extra: str = ""
) -> dict[str, str]:
    """Write a profile for the stand-in's ready line and kits; return the environment for it."""
    config = folder / "config.toml"
    hosts = {name: url for name, url in cloud["urls"].items() if name != "downloads"}
    lines = [
        'profile = "bench"',
        '[profiles.bench]\nbase = "standin"',
        "[profiles.bench.hosts]",
        *(f"{name} = {json.dumps(url)}" for name, url in hosts.items()),
        f"[profiles.bench.account]\norganization = {json.dumps(cloud['organization'])}",
        f"project = {json.dumps(cloud['project'])}",
        extra,
    ]
    for name, keys in kits.items():
        lines.append(f"[profiles.bench.kits.{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    config.write_text("\n".join(lines))
    credentials = cloud["credentials"]
    return {
        "CELLAGENT_CONFIG": str(config),
        "CELLAGENT_API_KEY": credentials["api_key"],
        "CELLAGENT_ORG_TOKEN": credentials["organization_auth_token"],
        "CELLAGENT_PROJECT_KEY": credentials["project_key"],
    }


def kit_keys(folder: Path, name: str = "kit") -> dict[str, str]:
    """Return the profile's keys for a kit of `virtual_kit`."""
    return {"port": str(folder / name), "companion_port": str(folder / f"{name}-wifi")}


def profile_with(folder: Path, cloud: Served, *names: str) -> dict[str, str]:
    """Write a profile for virtual kits (one, "kit", by default); return the environment for it."""
    return write_profile(folder, cloud.ready, {n: kit_keys(folder, n) for n in names or ("kit",)})


@dataclass
class RunningAgent:
    process: asyncio.subprocess.Process
    environment: Mapping[str, str]
    log: list[str] = field(default_factory=list)
    """Its lines on standard error."""
    output: list[dict[str, Any]] = field(default_factory=list)
    """Its lines on standard output."""

    async def until(self, kit: str | None, concern: str, state: str) -> dict[str, Any]:
        """Wait for a line that says so; lines that came before the last wait do not count."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                line = await self._line()
                if (line.get("kit"), line.get("concern"), line.get("state")) == (
                    kit,
                    concern,
                    state,
                ):
                    return line

    async def until_status(self, seen: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a status of which `seen` is true."""
        watcher = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent", "status", "--watch", "--json"),
            env={**os.environ, **self.environment},
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )
        assert watcher.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    line = await watcher.stdout.readline()
                    assert line, "the agent ended"
                    status: dict[str, Any] = json.loads(line)
                    if seen(status):
                        return status
        finally:
            watcher.kill()
            await watcher.wait()

    async def run(self, *words: str) -> Done:
        """Run another command beside it."""
        return await cellagent(*words, environment=self.environment)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)

    async def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        text = await self.process.stdout.readline()
        assert text, "the agent ended: " + "\n".join(self.log)
        self.output.append(json.loads(text))
        return self.output[-1]

    async def read_log(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.log.append(line.decode().rstrip())


@contextlib.asynccontextmanager
async def agent_on(environment: Mapping[str, str], *words: str) -> AsyncIterator[RunningAgent]:
    """Run the agent until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "run", "--json", *words),
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    agent = RunningAgent(process, environment)
    reading = asyncio.ensure_future(agent.read_log())
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert (await agent._line())["ready"], agent.log
        yield agent
    finally:
        with contextlib.suppress(ProcessLookupError):
            if process.returncode is None:
                process.kill()
        await process.wait()
        await reading


def concern_of(status: dict[str, Any], kit: str, concern: str) -> dict[str, Any]:
    """Return the entry of one concern of one kit."""
    (found,) = [each for each in status["kits"] if each["name"] == kit]
    entry: dict[str, Any] = next(c for c in found["concerns"] if c["concern"] == concern)
    return entry
