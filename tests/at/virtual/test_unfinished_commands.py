"""What a client left half-typed is never carried out by the next one: it ends as an error."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from at.driver.modem import Modem, open_modem
from at.protocol.errors import CommandTimeout
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem
from at.virtual.transport import VirtualTransport
from tests.support.harness import virtual_time

if TYPE_CHECKING:
    from pathlib import Path

DIALECTS = ("at-host", "serial-modem", "shell")
WRITTEN = 'AT%CMNG=0,17,0,"stays as it is"'
# The start of a write, of a deletion, of a switch: each would do harm if a line end completed it.
HALVES = {
    "write, quote open": 'AT%CMNG=0,18,0,"-----BEGIN CERTIFICATE-----\nMIIB',
    "write, quote closed": 'AT%CMNG=0,18,0,"-----BEGIN',
    "deletion": "AT%CMNG=3,17,0",
    "switch": "AT+CFUN=1",
    "name": "AT%XFACTORYRESET",
    "list": 'AT%CMNG=0,18,0,"text","',
}


def typed(dialect: str, half: str) -> bytes:
    if dialect == "shell":
        return f"at '{half}".replace("\n", "\\n").encode()
    return half.encode()


def closed(name: str, half: str) -> str:
    return half + '"' if name.endswith("closed") else half


async def state(modem: Modem) -> tuple[list[str], list[str]]:
    listed = await modem.execute("AT%CMNG=1")
    mode = await modem.execute("AT+CFUN?")
    of_the_maker = "%CMNG: 42949672"  # Nordic's own keys, there from the start
    slots = [line.split(",")[0] for line in listed.lines if not line.startswith(of_the_maker)]
    return slots, list(mode.lines)


UNTOUCHED = (["%CMNG: 17"], ["+CFUN: 0"])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", HALVES)
def test_half_a_command_that_a_client_left_is_not_carried_out(name: str, dialect: str) -> None:
    async def session() -> tuple[list[str], list[str]]:
        transport = VirtualTransport(dialect=dialect, instant=True)
        modem = Modem(transport)
        await modem.open()
        assert (await modem.execute(WRITTEN)).ok
        transport.write(typed(dialect, closed(name, HALVES[name])))
        await modem.close()
        modem = Modem(transport)
        await modem.open()
        try:
            return await state(modem)
        finally:
            await modem.close()

    assert virtual_time.run(session()) == UNTOUCHED


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", HALVES)
def test_half_a_command_that_lost_its_end_within_a_session_is_not_carried_out(
    name: str, dialect: str
) -> None:
    async def session() -> tuple[list[str], list[str]]:
        transport = VirtualTransport(dialect=dialect, instant=True)
        modem = Modem(transport)
        await modem.open()
        assert (await modem.execute(WRITTEN)).ok
        # The rest of the line was lost on its way.
        write = transport.write
        transport.write = lambda _data: write(  # type: ignore[method-assign]
            typed(dialect, closed(name, HALVES[name]))
        )
        with pytest.raises(CommandTimeout):
            await modem.execute("AT+CGMR", timeout_s=1)
        transport.write = write  # type: ignore[method-assign]
        try:
            return await state(modem)
        finally:
            await modem.close()

    assert virtual_time.run(session()) == UNTOUCHED


@pytest.mark.contract("D10.3")
async def test_a_client_killed_within_a_credential_leaves_nothing_stored(tmp_path: Path) -> None:
    runner = ModemRunner(make_modem(VirtualOptions(instant=True)))
    server = PtyServer(tmp_path / "kit", runner.receive)
    runner.attach(Port.AT, server.send)
    runner.start()
    half = 'AT%CMNG=0,18,0,"-----BEGIN CERTIFICATE-----\nMIIB'
    client = (
        f"import os, signal\nport = os.open({str(tmp_path / 'kit')!r}, os.O_RDWR | os.O_NOCTTY)\n"
        f"os.write(port, {half.encode()!r})\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    try:
        killed = await asyncio.create_subprocess_exec(sys.executable, "-c", client)
        assert await killed.wait() == -signal.SIGKILL
        async with open_modem(os.fspath(tmp_path / "kit")) as modem:
            assert (await state(modem))[0] == []
            assert (await modem.execute("AT+CGMM")).lines == ("nRF9161-LACA",)
    finally:
        runner.stop()
        server.close()
