"""Both serial transports over the real file descriptors of a PTY."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from at.driver.modem import Modem
from at.protocol.errors import LinkLost, PortBusy, PortNotFound
from at.transport.event_loop import SerialTransport
from at.transport.threaded import ThreadedSerialTransport
from tests.support.modem.byte_receiver import ByteReceiver
from tests.support.modem.pty_far_end import PtyFarEnd

if TYPE_CHECKING:
    from at.transport.base import Transport

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")
BOTH = pytest.mark.parametrize("kind", [SerialTransport, ThreadedSerialTransport])


def open_to_all(path: str) -> None:
    Path(path).chmod(0o666)


@pytest.mark.contract("C2")
@BOTH
async def test_bytes_go_both_ways_and_what_waited_at_open_is_kept(
    kind: type[SerialTransport],
) -> None:
    with PtyFarEnd(first=b"*** Booting ***\r\n") as far:
        received = ByteReceiver()
        transport = kind(far.path)
        await transport.open(received)
        await received.until(b"*** Booting ***\r\n")
        transport.write(b"AT\r")
        await transport.drain()
        await received.until(b"OK\r\n")
        await transport.close()
        await transport.close()
        assert received.lost == [None]
        with pytest.raises(LinkLost):
            transport.write(b"AT\r")
        with pytest.raises(LinkLost):
            await transport.drain()


@BOTH
async def test_unplugging_is_learnt_at_once_and_once(kind: type[SerialTransport]) -> None:
    with PtyFarEnd() as far:
        received = ByteReceiver()
        transport = kind(far.path)
        await transport.open(received)
        far.unplug()
        await received.until(lost=True)
        assert isinstance(received.lost[0], Exception)
        with pytest.raises(LinkLost):
            transport.write(b"AT\r")
        await transport.close()
        assert len(received.lost) == 1


async def test_a_kit_that_went_away_is_told_alike_by_a_write_that_comes_before_the_read() -> None:
    with PtyFarEnd() as far:
        modem = Modem(SerialTransport(far.path))
        await modem.open()
        await modem.execute("AT")
        far.unplug()
        with pytest.raises(LinkLost, match="was lost: the far end hung up") as told:
            await modem.execute("AT")
        assert told.value.hint == "plug the kit in again"
        await modem.close()


@BOTH
async def test_closing_is_bounded_though_the_far_end_does_not_read(
    kind: type[SerialTransport],
) -> None:
    far = PtyFarEnd()
    asyncio.get_running_loop().remove_reader(far.master)
    transport = kind(far.path)
    await transport.open(ByteReceiver())
    transport.write(b"x" * 300_000)
    async with asyncio.timeout(60):
        await transport.close()
    far.unplug()


@BOTH
async def test_a_close_that_is_cancelled_leaves_no_port_open(kind: type[SerialTransport]) -> None:
    with PtyFarEnd() as far:
        asyncio.get_running_loop().remove_reader(far.master)  # so the close waits for it to read
        transport = kind(far.path)
        await transport.open(ByteReceiver())
        transport.write(b"x" * 200_000)
        closing = asyncio.create_task(transport.close())
        await asyncio.sleep(0)
        assert closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        again = kind(far.path)  # as of the next kit there, in the same process
        await again.open(ByteReceiver())
        await again.close()


@BOTH
async def test_what_the_port_takes_in_pieces_arrives_whole_and_once(
    kind: type[SerialTransport],
) -> None:
    sent = b"".join(b"%d;" % number for number in range(20_000)) + b"the end"
    with PtyFarEnd() as far:
        transport = kind(far.path)
        await transport.open(ByteReceiver())
        transport.write(sent)
        async with asyncio.timeout(60):
            await far.until(b"the end")
        assert far.received == sent
        await transport.close()


@BOTH
async def test_a_second_opener_learns_who_holds_the_port(kind: type[SerialTransport]) -> None:
    with PtyFarEnd() as far:
        first = SerialTransport(far.path)
        await first.open(ByteReceiver())
        with pytest.raises(PortBusy) as busy:
            await kind(far.path).open(ByteReceiver())
        assert f"PID {os.getpid()}" in busy.value.holder
        await first.close()
        again = kind(far.path)
        await again.open(ByteReceiver())
        await again.close()


@BOTH
async def test_a_port_that_is_closed_is_free_though_a_fork_still_has_it(
    kind: type[SerialTransport],
) -> None:
    """As a worker of multiprocessing has all that was open when it was forked."""
    with PtyFarEnd() as far:
        first, again = kind(far.path), kind(far.path)
        await first.open(ByteReceiver())
        assert first._handle is not None
        numbers = [first._handle.fileno()]
        with subprocess.Popen("cat", stdin=subprocess.PIPE, pass_fds=numbers):  # noqa: ASYNC220
            await first.close()
            await again.open(ByteReceiver())
            await again.close()


async def test_a_port_that_is_not_there_is_named() -> None:
    with pytest.raises(PortNotFound, match="ttyNOWHERE"):
        await SerialTransport("/dev/pts/ttyNOWHERE").open(ByteReceiver())


@BOTH
async def test_after_unplug_and_replug_the_modem_is_there_again(
    kind: type[SerialTransport],
) -> None:
    for _ in range(3):
        with PtyFarEnd() as far:
            transport: Transport = kind(far.path)
            modem = Modem(transport)
            await modem.open()
            waiting = asyncio.create_task(modem.execute("AT+CGMR"))
            assert (await waiting).lines == ("mfw_nrf9160_1.3.5",)
            far._answer = lambda _line: b""
            waiting = asyncio.create_task(modem.execute("AT", timeout_s=60))
            await asyncio.sleep(0)
            far.unplug()
            with pytest.raises(LinkLost):
                async with asyncio.timeout(60):
                    await waiting
            await modem.close()


async def test_an_ordinary_user_cannot_open_a_port_that_is_held() -> None:
    """TIOCEXCL does not bind root: the second opener is an ordinary user, and asks for no lock."""
    with PtyFarEnd() as far:
        open_to_all(far.path)
        transport = SerialTransport(far.path)
        await transport.open(ByteReceiver())
        ordinary = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        command = ["/bin/sh", "-c", f"exec 3<>{far.path}"]
        other = await asyncio.create_subprocess_exec(*command, stderr=-1, **ordinary)
        _, said = await other.communicate()
        assert other.returncode != 0
        assert b"busy" in said.lower()
        await transport.close()
        again = await asyncio.create_subprocess_exec(*command, stderr=-1, **ordinary)
        _, said = await again.communicate()
        assert again.returncode == 0, said


async def test_in_a_flood_bytes_are_fetched_in_larger_pieces_and_a_write_ends_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("at.transport.event_loop._RAPID_S", 60.0)  # a machine under load is slow
    line = b"%CESQ: 54,2,20,3\r\n"
    with PtyFarEnd(lambda got: b"answer to " + got + b"\r\n") as far:
        received = ByteReceiver()
        transport = SerialTransport(far.path)
        await transport.open(received)
        port = transport._port

        async def flood() -> None:
            """Send a line whenever the last one was received, until the port is polled."""
            received.data = b""
            port._written_at = -1.0
            sent = 0
            while port._polling is None:
                far.say(line)
                sent += 1
                await received.until(line * sent)

        await flood()
        far.say(line)
        transport.write(b"AT\r")
        assert port._polling is None
        await received.until(line + b"answer to AT\r\n")
        await flood()
        far.unplug()
        await received.until(lost=True)
        await transport.close()


@BOTH
async def test_a_line_that_is_written_just_before_the_close_reaches_the_far_end(
    kind: type[SerialTransport],
) -> None:
    with PtyFarEnd() as far:
        asyncio.get_running_loop().remove_reader(far.master)  # it reads once the port is closed
        transport = kind(far.path)
        await transport.open(ByteReceiver())
        transport.write(b"kernel reboot cold\r")
        await transport.close()
        assert select.select([far.master], [], [], 10)[0], "nothing came"
        assert os.read(far.master, 100) == b"kernel reboot cold\r"


@BOTH
async def test_what_waits_for_room_when_the_port_is_closed_reaches_a_far_end_that_reads(
    kind: type[SerialTransport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{kind.__module__}._CLOSE_S", 60.0)  # a shared machine stalls
    sent = b"x" * 30_000 + b"the end"
    with PtyFarEnd() as far:
        transport = kind(far.path)
        await transport.open(ByteReceiver())
        transport.write(sent)
        await transport.close()
        async with asyncio.timeout(10):
            await far.until(b"the end")
        assert far.received == sent
