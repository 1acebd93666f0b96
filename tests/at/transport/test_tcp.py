"""A modem behind a TCP port: addresses, answers, and the end of the connection."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys

import pytest

from at.driver.modem import open_modem
from at.protocol.errors import LinkLost, PortNotFound
from at.transport import tcp
from at.transport.tcp import TcpTransport
from tests.support.modem.byte_receiver import ByteReceiver


@pytest.mark.parametrize(
    "name", ["tcp://", "tcp://host", "tcp://:99999", "tcp://[::1", "tcp://::1:5000"]
)
async def test_a_malformed_tcp_address_is_refused(name: str) -> None:
    with pytest.raises(PortNotFound, match="names no TCP port"):
        await TcpTransport(name).open(ByteReceiver())


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
        await TcpTransport(f"tcp://127.0.0.1:{port}").open(ByteReceiver())


@pytest.fixture
def two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each name lead to two addresses of this machine, which nobody else has as one name."""

    def resolve(_: str, port: int, *_rest: object, **__: object) -> list[object]:
        stream = socket.AF_INET, socket.SOCK_STREAM, 0, ""
        return [(*stream, ("127.0.0.1", port)), (*stream, ("127.0.0.2", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses")
@pytest.mark.usefixtures("two_addresses")
async def test_a_name_with_a_silent_address_is_reached_at_its_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp, "_CONNECT_S", 2.0)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
        address = silent.getsockname()
        with socket.create_connection(address), socket.create_server(("127.0.0.2", address[1])):
            transport = TcpTransport(f"tcp://kit.example:{address[1]}")
            await transport.open(ByteReceiver())
            await transport.close()


async def test_an_opening_that_is_broken_off_leaves_no_socket() -> None:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    opened = False
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        name = f"tcp://localhost:{server.sockets[0].getsockname()[1]}"
        turns = 0
        while not opened:
            transport, turns = TcpTransport(name), turns + 1
            opening = asyncio.create_task(transport.open(ByteReceiver()))
            for _ in range(turns):
                await asyncio.wait([opening], timeout=0)
            if opened := opening.done():
                await opening
            opening.cancel()
            await asyncio.wait([opening])
            await transport.close()
            del opening
    gc.collect()  # an open socket would warn here


@pytest.mark.usefixtures("two_addresses")
async def test_a_name_whose_addresses_all_refuse_says_so_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name = f"tcp://kit.example:{server.getsockname()[1]}"
    with pytest.raises(PortNotFound, match=f"^{name}: nothing listens there$"):
        await TcpTransport(name).open(ByteReceiver())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses")
@pytest.mark.usefixtures("two_addresses")
async def test_a_name_that_is_not_reached_says_what_each_address_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp, "_CONNECT_S", 0.2)
    with socket.create_server(("127.0.0.2", 0), backlog=0) as silent:
        address = silent.getsockname()
        with socket.create_connection(address), pytest.raises(PortNotFound) as refused:
            await TcpTransport(f"tcp://kit.example:{address[1]}").open(ByteReceiver())
    assert str(refused.value).endswith(": nothing listens there, no connection in 0.1 s")
    assert refused.value.hint == "is the far end running?"


@pytest.mark.parametrize("ends", ["closed here", "closed here, cancelled", "broken off there"])
async def test_what_the_far_end_never_reads_keeps_nobody_waiting(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "_CLOSE_S", 0.01)
    far: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def never_read(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await far.put(writer)

    server = await asyncio.start_server(never_read, "127.0.0.1", 0)
    received = ByteReceiver()
    transport = TcpTransport(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await transport.open(received)
    connected = await far.get()
    transport.write(b"x" * 20_000_000)
    async with asyncio.timeout(20):
        if ends.startswith("closed here"):
            closing = asyncio.create_task(transport.close())
            if ends.endswith("cancelled"):
                await asyncio.sleep(0)
                closing.cancel()
            await asyncio.wait([closing])
            await received.until(lost=True)
            assert received.lost == [None]
        else:
            waiting = asyncio.create_task(transport.drain())
            await asyncio.sleep(0)
            connected.transport.abort()
            with pytest.raises(LinkLost):
                await waiting
    await transport.close()
    connected.transport.abort()
    server.close()


async def test_a_far_end_that_hangs_up_is_told_once() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    received = ByteReceiver()
    transport = TcpTransport(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await transport.open(received)
    await received.until(lost=True)
    await transport.close()
    server.close()
    assert [str(reason) for reason in received.lost] == ["the far end hung up"]
