"""Ctrl-C while a command is in flight: exit 130, CMEE put back, the port free for the next."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from at.driver.modem import open_modem
from at.transport.serial import open_handle
from at.virtual.modem import Port, VirtualModem
from at.virtual.options import VirtualOptions
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 90


@dataclass
class Kit:
    """A virtual modem on a terminal, served by the test itself."""

    path: str
    modem: VirtualModem
    heard: bytes = b""

    def __post_init__(self) -> None:
        self.more = asyncio.Event()

    async def until(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while data not in self.heard:
                self.more.clear()
                await self.more.wait()


@contextlib.asynccontextmanager
async def served(folder: Path, fault: str) -> AsyncIterator[Kit]:
    runner = ModemRunner(make_modem(VirtualOptions(faults=(fault,), instant=True)))
    kit = Kit(str(folder / "kit"), runner.modem)

    def receive(data: bytes) -> None:
        kit.heard += data
        kit.more.set()
        runner.receive(data)

    server = PtyServer(folder / "kit", receive)
    runner.attach(Port.AT, server.send)
    runner.start()
    try:
        yield kit
    finally:
        runner.stop()
        server.close()


async def interrupted(kit: Kit) -> tuple[int, bytes]:
    """Run `modem at`, press Ctrl-C once the modem has the command; return exit code and stderr."""
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "modem", "at", "--json", "--port", kit.path),
        *("--timeout", "60", "AT%XVBAT"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await kit.until(b"AT%XVBAT\r")
        client.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await client.communicate()
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()
    assert client.returncode is not None
    assert json.loads(out.splitlines()[-1])["error"]["kind"] == "interrupted"
    return client.returncode, err


@pytest.mark.contract("D10.3")
async def test_ctrl_c_within_a_slow_answer_puts_cmee_back_and_frees_the_port(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, "slow=0.3") as kit:
        code, err = await interrupted(kit)
        assert code == 130
        assert b"Traceback" not in err
        assert not kit.modem.kit.session.cmee
        async with open_modem(kit.path) as modem:
            assert (await modem.execute("AT+CGMM")).lines == ("nRF9161-LACA",)


@pytest.mark.contract("D10.3")
async def test_ctrl_c_at_a_silent_modem_ends_all_the_same_and_frees_the_port(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, "silent=3") as kit:
        code, err = await interrupted(kit)
        assert code == 130
        assert b"Traceback" not in err
        open_handle(kit.path, baud=115200, rtscts=None).close()
