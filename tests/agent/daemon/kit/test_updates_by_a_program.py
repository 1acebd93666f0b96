"""Updates by a program of the user's, which flashes a kit that is unplugged by it, with kills."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.fota.journal import Journal, journal_folder
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem
from at.virtual.session import ModemMode
from tests.support.cloud.standin import StandIn
from tests.support.commands.running_agent import PATIENCE_S, agent_on
from tests.support.fota.signed_images import signed_image
from tests.support.fota.update_offers import (
    DEVICE,
    device_profile,
    job_status,
    offer_update,
    onboard_device,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

PROGRAM = """
import socket, sys
far = socket.socket(socket.AF_UNIX)
far.connect(sys.argv[1])
far.sendall(open(sys.argv[2], "rb").read(16).hex().encode() + b"\\n")
print(far.makefile().readline().strip())
"""
STAGES = ("begins", "unplugged", "plugged in", "ends")
"""Of the program, as the kit sees it; SETTING is a command that the agent sends afterwards."""
SETTING = b"AT+CFUN=1"


@dataclass
class FlashedKit:
    """A kit that a program flashes: it vanishes from its port meanwhile, and starts turned off."""

    runner: ModemRunner
    port: PtyServer
    flashes: int = 0
    begun: int = 0
    may_flash: asyncio.Event | None = None
    """What each run of the program waits for, once it has begun."""
    is_there: asyncio.Event = field(default_factory=asyncio.Event)
    at_stage: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What to do once when a stage is there."""

    def reach(self, stage: str) -> None:
        """Do what waits for a stage."""
        self.at_stage.pop(stage, lambda: None)()

    def receive(self, data: bytes) -> None:
        """Take what is sent to the AT port."""
        if SETTING in data:
            self.reach("setting")
        self.runner.receive(data)

    async def flash(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one run of the program."""
        await reader.readline()
        self.begun += 1
        self.reach("begins")
        if self.may_flash is not None:
            await self.may_flash.wait()
        self.is_there.clear()
        self.port.close()
        self.reach("unplugged")
        await asyncio.sleep(0.3)  # so long the kit is away
        self.flashes += 1
        self.runner.modem.kit.saved.app_version = "2.0.1"
        self.runner.modem.restart()
        self.port.plug_in()
        self.is_there.set()
        self.runner.flush()
        self.reach("plugged in")
        with contextlib.suppress(ConnectionError):
            writer.write(b"version: 2.0.1\n")
            await writer.drain()
        writer.close()
        self.reach("ends")


@contextlib.asynccontextmanager
async def flashed_kit(folder: Path, dialect: str) -> AsyncIterator[FlashedKit]:
    """Serve it on FOLDER/kit, and what flashes it on FOLDER/flash."""
    runner = ModemRunner(make_modem(VirtualOptions(instant=True, dialect=dialect)))
    runner.receive(b"AT+CFUN=1\r\nAT+CEREG=5\r\n")
    kit: FlashedKit

    def receive(data: bytes) -> None:
        kit.receive(data)

    port = PtyServer(folder / "kit", receive)
    kit = FlashedKit(runner, port)
    runner.attach(Port.AT, port.send)
    runner.start()
    kit.is_there.set()
    server = await asyncio.start_unix_server(kit.flash, folder / "flash")
    try:
        yield kit
    finally:
        server.close()
        runner.stop()
        port.close()


def profile_by_program(folder: Path, standin: StandIn) -> dict[str, str]:
    program = folder / "flash.py"
    program.write_text(PROGRAM)
    words = [sys.executable, str(program), str(folder / "flash"), "{image}"]
    fota = f"[profiles.bench.fota]\ninterval_s = 1\ncommand = {words}"
    return device_profile(
        folder, standin, fota, settle_s=0.5, keep_online="never", companion_port=""
    )


def detail_of_last_job() -> str:
    folder = journal_folder(Path(os.environ["CELLAGENT_STATE_DIR"]), DEVICE)
    return Journal(folder).results[-1].detail


@pytest.mark.parametrize(
    ("dialect", "kind", "killed_at"),
    [
        *(("at-host", "application", stage) for stage in (None, *STAGES, "setting")),
        ("serial-modem", "application", "unplugged"),
        *(("at-host", "mcuboot", stage) for stage in (None, "unplugged")),
    ],
)
@pytest.mark.parametrize("command", ["run", "fota pull"])
async def test_a_kit_that_a_program_flashes_is_put_back_as_it_was_found(
    standin: Any, tmp_path: Path, command: str, killed_at: str | None, dialect: str, kind: str
):
    await onboard_device(standin)
    image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 30).read_bytes()
    job_id = await offer_update(standin, image, "v2.0.1", kind)
    where = profile_by_program(tmp_path, standin)

    async def ended() -> bool:
        return await job_status(standin, job_id) not in {"QUEUED", "IN_PROGRESS", "DOWNLOADING"}

    async with flashed_kit(tmp_path, dialect) as kit:

        def kill() -> None:
            process.kill()

        if killed_at is not None:
            kit.at_stage[killed_at] = kill
        for _ in range(1 if killed_at is None else 2):
            await kit.is_there.wait()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agent", *command.split()), env={**os.environ, **where}
            )
            async with asyncio.timeout(PATIENCE_S):
                while process.returncode is None and not (command == "run" and await ended()):
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(process.wait(), 0.2)
            if process.returncode is None:
                process.terminate()
                await process.wait()
        session = kit.runner.modem.kit.session
    assert await job_status(standin, job_id) == "SUCCEEDED"
    assert "; back online after " in detail_of_last_job()
    assert (session.fun, session.subscriptions.cereg) == (ModemMode.NORMAL, 5)
    assert kit.flashes <= 2, "one more than the kill has broken off"


async def test_no_second_program_is_run_beside_that_of_an_agent_that_was_killed(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 30).read_bytes()
    job_id = await offer_update(standin, image, "v2.0.1")
    where = profile_by_program(tmp_path, standin)
    async with flashed_kit(tmp_path, "serial-modem") as kit:
        kit.may_flash = asyncio.Event()
        begins = asyncio.Event()
        kit.at_stage["begins"] = begins.set
        async with agent_on(where) as killed, asyncio.timeout(PATIENCE_S):
            await begins.wait()
            killed.process.kill()
        async with agent_on(where) as again:
            kit.at_stage["begins"] = again.process.kill
            waits = await again.until("kit", "fota", "trouble")
            kit.may_flash.set()
            await again.until("kit", "fota", "well")
            await again.stop()
    assert "another process carries out this kit's jobs: python" in waits["trouble"]
    assert (kit.begun, kit.flashes) == (1, 1)
    assert await job_status(standin, job_id) == "SUCCEEDED"
