"""Updates by MCUboot over a port that the agent keeps open: the console's, or the AT port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud.standin import StandIn
from tests.support.commands.console_window import window
from tests.support.commands.running_agent import PATIENCE_S, agent_on, concern_of, virtual_kit
from tests.support.fota.signed_images import signed_image
from tests.support.fota.update_offers import (
    DEVICE,
    device_profile,
    job_status,
    offer_update,
    onboard_device,
)

pytest.importorskip("smpclient", reason="pip install 'cellagent[mcuboot]'")

from agent.fota.journal import Journal, journal_folder
from at.virtual.console import export_lines
from at.virtual.modem import Port
from at.virtual.options import VirtualOptions
from at.virtual.server.pty import PtyServer
from at.virtual.server.runner import ModemRunner, make_modem
from tests.support.fota.smp_server import SmpKit, SmpLine, booted, smp_kit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

LINE = "[00:00:01.000,000] <inf> app: number {}\r\n"
MESSAGE = b"\x02 a message that is longer than one chunk " * 8


@dataclass
class Bench:
    """A kit whose console and SMP server share a port, and the update that it is offered."""

    board: SmpKit
    where: dict[str, str]
    standin: StandIn
    job_id: str = ""

    async def offer(self, folder: Path) -> None:
        """Offer the kit an update."""
        new = signed_image(folder, "2.0.1", body=bytes(range(256)) * 300)
        self.job_id = await offer_update(self.standin, new.read_bytes(), "2.0.1")

    async def state(self) -> str:
        """Return the state that the device cloud has for the job."""
        return await job_status(self.standin, self.job_id)

    def say(self, number: int) -> None:
        """Print a line on the console."""
        self.board.say(LINE.format(number).encode())

    def at_request(self, number: int, act: Callable[[], None]) -> None:
        """Have `act` called when the kit hears the SMP request of this number."""
        answer = self.board.answer

        def watched(*request: Any) -> dict[str, Any]:
            answered = answer(*request)
            if self.board.requests == number:
                act()
            return answered

        self.board.answer = watched  # type: ignore[method-assign] # this kit alone


@contextlib.asynccontextmanager
async def kit_with_update(
    standin: StandIn, folder: Path, *, offered: bool = True, **options: Any
) -> AsyncIterator[Bench]:
    """Serve the modem on FOLDER/kit, the application on FOLDER/smp; an update may wait."""
    await onboard_device(standin)
    old = signed_image(folder, "1.0.0", name="old.bin")
    await virtual_kit(folder)
    async with smp_kit(folder, old, **options) as board:
        # Where none is offered yet, it is to be found soon.
        fota = "" if offered else "[profiles.bench.fota]\ninterval_s = 1.0"
        ports = {"console_port": board.port, "mcuboot_port": board.port}
        where = device_profile(folder, standin, fota, **ports)
        bench = Bench(board, where, standin)
        if offered:
            await bench.offer(folder)
        yield bench


def ended(status: dict[str, Any]) -> bool:
    return "last" in concern_of(status, "kit", "fota")


def listens(status: dict[str, Any]) -> bool:
    console = concern_of(status, "kit", "console")
    return console["phase"] == "well" and "let_go_for" not in console


async def heard(bench: Bench, lines: Any, number: int) -> None:
    """Have the kit print a line until a window shows it: the port may be closed for an instant."""
    shown = asyncio.ensure_future(lines.until(f"number {number}"))
    while not shown.done():
        bench.say(number)
        await asyncio.wait([shown], timeout=0.2)
    await shown


@pytest.mark.contract("C6")
async def test_the_console_lets_its_port_go_for_an_update_and_takes_it_up_again(
    standin: StandIn, tmp_path: Path
):
    async with (
        kit_with_update(standin, tmp_path, offered=False) as bench,
        agent_on(bench.where) as agent,
    ):
        async with window(bench.where) as shown:
            await bench.offer(tmp_path)
            await shown.until("let go of it for")
            await shown.until("is back")
            status = await agent.until_status(ended)
            assert await bench.state() == "SUCCEEDED", agent.log
            await agent.until_status(listens)
            await heard(bench, shown, 7)
            assert not [line for line in shown.lines if "went away" in line]
        console = concern_of(status, "kit", "console")
        assert console["let_go"] >= 4, "two looks, the installation, the confirmation"
        said = (await agent.run("status")).out
        assert f"let go {console['let_go']} times (" in said, said
        assert await agent.stop() == 0


async def test_what_the_kit_prints_during_the_upload_is_kept(standin: StandIn, tmp_path: Path):
    exported = export_lines(MESSAGE)

    async with kit_with_update(standin, tmp_path, offered=False) as bench:

        def speak() -> None:
            bench.say(41)
            for line in exported:
                bench.board.say(line.encode() + b"\r\n")

        bench.at_request(12, speak)  # in the middle of the upload
        async with agent_on(bench.where) as agent, window(bench.where, "--json") as shown:
            await bench.offer(tmp_path)
            await shown.until("number 41")
            status = await agent.until_status(ended)
            assert await bench.state() == "SUCCEEDED", agent.log
            assert concern_of(status, "kit", "console")["chunks"] == len(exported)
            assert await agent.stop() == 0


async def test_after_an_update_that_failed_the_console_is_heard_again(
    standin: StandIn, tmp_path: Path
):
    async with (
        kit_with_update(standin, tmp_path, mood="no-swap") as bench,
        agent_on(bench.where) as agent,
    ):
        await agent.until_status(ended)
        assert await bench.state() == "FAILED", agent.log
        await agent.until_status(listens)
        async with window(bench.where) as shown:
            await heard(bench, shown, 3)
        assert await agent.stop() == 0


async def test_a_kit_that_does_not_speak_smp_keeps_its_console(standin: StandIn, tmp_path: Path):
    async with (
        kit_with_update(standin, tmp_path, mood="mute") as bench,
        agent_on(bench.where) as agent,
    ):
        told = await agent.until("kit", "fota", "trouble")
        assert "no SMP server answers" in told["trouble"]
        await agent.until_status(listens)
        async with window(bench.where) as shown:
            await heard(bench, shown, 5)
        assert await agent.stop() == 0


@pytest.mark.parametrize("gently", [True, False], ids=["Ctrl-C", "killed"])
async def test_an_agent_that_ends_in_the_upload_goes_on_when_it_runs_again(
    standin: StandIn, tmp_path: Path, gently: bool
):
    async with kit_with_update(standin, tmp_path) as bench:
        in_the_middle = asyncio.Event()
        bench.at_request(10, in_the_middle.set)
        async with agent_on(bench.where) as agent:
            await in_the_middle.wait()
            if gently:
                assert await agent.stop(2) in {0, 130}
            else:
                agent.process.kill()
        assert await bench.state() == "IN_PROGRESS"
        async with agent_on(bench.where) as agent:
            await agent.until_status(ended)
            assert await bench.state() == "SUCCEEDED", agent.log
            await agent.until_status(listens)
            async with window(bench.where) as shown:
                await heard(bench, shown, 9)
            assert await agent.stop() == 0


def printed_dump() -> tuple[bytes, bytes]:
    """Return what a crash of the virtual modem prints, cut in the middle of its core dump."""
    runner, printed = ModemRunner(make_modem(VirtualOptions(instant=True))), bytearray()
    runner.attach(Port.AT, printed.extend)
    runner.start()
    runner.crash()
    runner.stop()
    middle = (printed.index(b"#CD:BEGIN#") + printed.index(b"#CD:END#")) // 2
    return bytes(printed[:middle]), bytes(printed[middle:])


async def test_a_core_dump_that_is_being_printed_is_heard_to_its_end_first(
    standin: StandIn, tmp_path: Path
):
    first, rest = printed_dump()
    async with (
        kit_with_update(standin, tmp_path, offered=False) as bench,
        agent_on(bench.where) as agent,
    ):
        await agent.until("kit", "console", "well")
        async with window(bench.where, "--json") as shown:
            bench.say(1)
            bench.board.say(first)
            await shown.until("number 1")
            await bench.offer(tmp_path)
            await agent.until_status(
                lambda status: "busy_with" in concern_of(status, "kit", "link")
            )
            bench.board.say(rest)
            dump = json.loads(await shown.until('"coredump"'))
            assert dump["status"] == "complete"
        await agent.until_status(ended)
        assert await bench.state() == "SUCCEEDED", agent.log
        assert await agent.stop() == 0


@dataclass
class OnePort:
    """A kit that speaks AT and SMP on one port, a line of each at a time."""

    board: SmpKit
    runner: ModemRunner
    port: PtyServer
    hears: Callable[[bytes], None] = lambda _data: None
    """Called with the AT commands that it hears."""

    def restart(self) -> asyncio.Future[None]:
        """Restart the modem, too, and vanish from its port until the future is done."""
        self.runner.modem.restart()
        self.runner.flush()
        return asyncio.ensure_future(self.port.hang_up(for_good=False))


@contextlib.asynccontextmanager
async def one_port(folder: Path, running: Path) -> AsyncIterator[OnePort]:
    """Serve a kit with a single port on FOLDER/kit."""
    runner, kit = ModemRunner(make_modem(VirtualOptions(instant=True))), booted(folder, running)
    smp = SmpLine(kit)

    def receive(data: bytes) -> None:
        if data.startswith((b"\x06\x09", b"\x04\x14")):
            smp.receive(data)
            return
        served.hears(data)
        runner.receive(data)

    port = PtyServer(folder / "kit", receive)
    served = OnePort(kit, runner, port)
    companion = PtyServer(folder / "kit-wifi", partial(runner.receive, port=Port.COMPANION))
    runner.attach(Port.AT, port.send)
    runner.attach(Port.COMPANION, companion.send)
    kit.port, kit.say = port.port, port.send
    runner.start()
    try:
        yield served
    finally:
        kit.stop()
        runner.stop()
        port.close()
        companion.close()


async def test_a_kit_with_a_single_port_is_updated_over_its_at_port(
    standin: StandIn, tmp_path: Path
):
    await onboard_device(standin)
    old = signed_image(tmp_path, "1.0.0", name="old.bin")
    new = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300)
    job_id = await offer_update(standin, new.read_bytes(), "2.0.1")
    async with one_port(tmp_path, old) as served:
        board = served.board
        ports = {"console_port": "same", "mcuboot_port": board.port}
        async with agent_on(device_profile(tmp_path, standin, **ports)) as agent:
            await agent.until_status(ended)
            assert await job_status(standin, job_id) == "SUCCEEDED", agent.log
            await agent.until("kit", "link", "well")
            async with window(agent.environment) as shown:
                board.say(LINE.format(8).encode())
                await shown.until("number 8")
            assert await agent.stop() == 0
    lost = [line for line in agent.log if "link" in json.loads(line).get("message", "")]
    assert not lost, "nothing was lost, it was let go"


SET = ("AT%XSYSTEMMODE=1,1,0,0", "AT+CEREG=2", "AT+CSCON=1", "AT+CFUN=1")
ASKED = ("AT+CFUN?", "AT+CEREG?", "AT+CSCON?", "AT%XSYSTEMMODE?", "AT+CCLK?")
FOUND = ("+CFUN: 1", "+CEREG: 2,1", "+CSCON: 1,", "%XSYSTEMMODE: 1,1,0,0", "+CCLK: ")
KILLED_AT: dict[str, Callable[[tuple[int, int, bool], int], bool]] = {
    "never": lambda *_: False,
    "a look": lambda request, _: request == (1, 0, False),
    "the upload": lambda request, count: request == (1, 1, True) and count > 9,
    "the mark": lambda request, _: request == (1, 0, True),
    "the restart": lambda request, _: request == (0, 5, True),
    "a look after it": lambda request, count: request == (1, 0, False) and count > 100,
    "the confirmation": lambda request, count: request == (1, 0, True) and count > 100,
}
"""What of a request, and of how many there were (100 more after a restart), ends the agent."""


@pytest.mark.parametrize("killed_at", [*KILLED_AT, "the mode"])
async def test_a_kit_is_back_as_it_was_found_though_it_vanishes_and_the_agent_is_killed(
    standin: StandIn, tmp_path: Path, killed_at: str
):
    await onboard_device(standin)
    old = signed_image(tmp_path, "1.0.0", name="old.bin")
    new = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300)
    is_killed = asyncio.Event()
    if killed_at == "never":
        is_killed.set()

    def kill() -> None:
        if offered and not is_killed.is_set():
            agent.process.kill()
            is_killed.set()

    offered = ""
    async with one_port(tmp_path, old) as served:
        board, answer, restart = served.board, served.board.answer, served.board.restart
        vanishing: list[asyncio.Future[None]] = []

        def watched(*request: Any) -> dict[str, Any]:
            if KILLED_AT.get(killed_at, KILLED_AT["never"])(
                request[:3], board.requests + 100 * board.restarts
            ):
                kill()
            return answer(*request)

        def restarted() -> None:
            restart()
            vanishing.append(served.restart())

        def hears(data: bytes) -> None:
            if killed_at == "the mode" and b"AT+CFUN=1" in data and board.restarts:
                kill()

        board.answer, board.restart = watched, restarted  # type: ignore[method-assign]
        served.hears = hears
        fota = "[profiles.bench.fota]\ninterval_s = 1.0"
        keys = {"settle_s": 1, "keep_online": "never", "console_port": "same"}
        keys["mcuboot_port"] = board.port
        where = device_profile(tmp_path, standin, fota, **keys)
        async with agent_on(where) as agent:
            await agent.until("kit", "link", "well")
            assert (await agent.run("modem", "at", *SET)).code == 0
            offered = await offer_update(standin, new.read_bytes(), "2.0.1")
            if killed_at == "never":
                await agent.until_status(ended)
            else:
                await asyncio.wait_for(is_killed.wait(), PATIENCE_S)
                await agent.process.wait()
        async with agent_on(where) as agent:
            if killed_at != "never":
                await agent.until_status(ended)
            await agent.until("kit", "link", "well")
            told = await agent.run("modem", "at", *ASKED)
            assert await agent.stop() == 0
    for line in FOUND:
        assert line in told.out
    folder = journal_folder(Path(os.environ["CELLAGENT_STATE_DIR"]), DEVICE)
    assert "; back online after " in Journal(folder).results[-1].detail
    assert await job_status(standin, offered) == "SUCCEEDED"
