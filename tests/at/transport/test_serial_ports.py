"""Real file descriptors: both serial transports over a PTY, and TCP."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pty_far_end import PtyFarEnd

from at.driver.modem import Modem, open_modem
from at.ports.holders import holder_of, opening_error
from at.protocol.errors import LinkLost, PortBusy, PortForbidden, PortNotFound
from at.transport.serial import SerialTransport
from at.transport.tcp import TcpTransport
from at.transport.threaded import ThreadedSerialTransport

if TYPE_CHECKING:
    from at.transport.base import Transport

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")
BOTH = pytest.mark.parametrize("kind", [SerialTransport, ThreadedSerialTransport])


def open_to_all(path: str) -> None:
    Path(path).chmod(0o666)


class Heard:
    """A receiver that keeps what it is told."""

    def __init__(self) -> None:
        self.data = b""
        self.lost: list[Exception | None] = []
        self.changed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.changed.set()

    def connection_lost(self, reason: Exception | None) -> None:
        self.lost.append(reason)
        self.changed.set()

    async def until(self, data: bytes = b"", *, lost: bool = False) -> None:
        async with asyncio.timeout(60):
            while data not in self.data or (lost and not self.lost):
                self.changed.clear()
                await self.changed.wait()


@BOTH
async def test_bytes_go_both_ways_and_what_waited_at_open_is_kept(
    kind: type[SerialTransport],
) -> None:
    with PtyFarEnd(first=b"*** Booting ***\r\n") as far:
        heard = Heard()
        transport = kind(far.path)
        await transport.open(heard)
        await heard.until(b"*** Booting ***\r\n")
        transport.write(b"AT\r")
        await transport.drain()
        await heard.until(b"OK\r\n")
        await transport.close()
        await transport.close()
        assert heard.lost == [None]
        with pytest.raises(LinkLost):
            transport.write(b"AT\r")
        with pytest.raises(LinkLost):
            await transport.drain()


@BOTH
async def test_unplugging_is_learnt_at_once_and_once(kind: type[SerialTransport]) -> None:
    with PtyFarEnd() as far:
        heard = Heard()
        transport = kind(far.path)
        await transport.open(heard)
        far.unplug()
        await heard.until(lost=True)
        assert isinstance(heard.lost[0], Exception)
        with pytest.raises(LinkLost):
            transport.write(b"AT\r")
        await transport.close()
        assert len(heard.lost) == 1


@BOTH
async def test_closing_is_bounded_though_the_far_end_does_not_read(
    kind: type[SerialTransport],
) -> None:
    far = PtyFarEnd()
    asyncio.get_running_loop().remove_reader(far.master)
    transport = kind(far.path)
    await transport.open(Heard())
    transport.write(b"x" * 300_000)
    async with asyncio.timeout(60):
        await transport.close()
    far.unplug()


@BOTH
async def test_a_second_opener_learns_who_holds_the_port(kind: type[SerialTransport]) -> None:
    with PtyFarEnd() as far:
        first = SerialTransport(far.path)
        await first.open(Heard())
        with pytest.raises(PortBusy) as busy:
            await kind(far.path).open(Heard())
        assert f"PID {os.getpid()}" in busy.value.holder
        await first.close()
        again = kind(far.path)
        await again.open(Heard())
        await again.close()


async def test_the_holder_is_named_though_it_is_another_process() -> None:
    with PtyFarEnd() as far:
        code = "import os, sys; os.open(sys.argv[1], os.O_RDWR); print(flush=True); input()"
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, far.path, stdin=-1, stdout=-1
        )
        assert other.stdout is not None
        await other.stdout.readline()
        try:
            assert f"(PID {other.pid})" in holder_of(far.path)
        finally:
            other.kill()
            await other.wait()


async def test_a_port_that_is_not_there_is_named() -> None:
    with pytest.raises(PortNotFound, match="ttyNOWHERE"):
        await SerialTransport("/dev/pts/ttyNOWHERE").open(Heard())


def test_a_refused_permission_names_the_group_that_has_it() -> None:
    error = opening_error("/dev/tty", "/dev/tty", PermissionError(13, "Permission denied"))
    assert isinstance(error, PortForbidden)
    assert error.group in error.hint


@pytest.mark.parametrize("name", ["tcp://", "tcp://host", "tcp://:99999", "tcp://[::1"])
async def test_a_malformed_tcp_address_is_refused(name: str) -> None:
    with pytest.raises(PortNotFound):
        await TcpTransport(name).open(Heard())


async def test_a_modem_behind_tcp_answers_and_its_hanging_up_is_learnt() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readuntil(b"\r"):
            if line == b"AT+BYE\r":
                writer.close()
                return
            writer.write(b"+CMEE: 1\r\nOK\r\n" if b"CMEE?" in line else b"OK\r\n")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with open_modem(f"tcp://127.0.0.1:{port}") as modem:
        assert (await modem.execute("AT")).final == "OK"
        with pytest.raises(LinkLost):
            await modem.execute("AT+BYE")
    server.close()
    with pytest.raises(PortNotFound):
        await TcpTransport(f"tcp://127.0.0.1:{port}").open(Heard())


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
        await transport.open(Heard())
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
    monkeypatch.setattr("at.transport.serial._RAPID_S", 60.0)  # a machine under load is slow
    line = b"%CESQ: 54,2,20,3\r\n"
    with PtyFarEnd(lambda got: b"answer to " + got + b"\r\n") as far:
        heard = Heard()
        transport = SerialTransport(far.path)
        await transport.open(heard)
        port = transport._port

        async def flood() -> None:
            """Say a line whenever the last one was heard, until the reader rests."""
            heard.data = b""
            port._written_at = -1.0
            sent = 0
            while port._resting is None:
                far.say(line)
                sent += 1
                await heard.until(line * sent)

        await flood()
        far.say(line)
        transport.write(b"AT\r")
        assert port._resting is None
        await heard.until(line + b"answer to AT\r\n")
        await flood()
        far.unplug()
        await heard.until(lost=True)
        await transport.close()
