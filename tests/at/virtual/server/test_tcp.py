"""A TCP port takes one client at a time, as a serial port does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from at.protocol.errors import PortError
from at.virtual.server.tcp import TcpServer, is_loopback


@asynccontextmanager
async def listening(received: Callable[[bytes], None]) -> AsyncIterator[tuple[TcpServer, int]]:
    server = TcpServer(received)
    await server.listen("127.0.0.1", 0)
    try:
        yield server, int(server.port.rpartition(":")[2])
    finally:
        await server.close()


async def test_a_second_client_is_turned_away_and_the_first_is_served() -> None:
    got: asyncio.Queue[bytes] = asyncio.Queue()
    async with asyncio.timeout(60), listening(got.put_nowait) as (server, port):
        assert server.port == f"tcp://127.0.0.1:{port}"
        server.send(b"to nobody")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"AT\r")
        assert await got.get() == b"AT\r"
        second, other = await asyncio.open_connection("127.0.0.1", port)
        assert await second.read() == b""
        other.close()
        server.send(b"OK\r\n")
        assert await reader.readexactly(4) == b"OK\r\n"
        writer.close()


async def test_a_disconnected_client_has_read_everything_before() -> None:
    opened = asyncio.Event()
    async with asyncio.timeout(60), listening(lambda _data: None) as (server, port):
        server.opened = opened.set
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await opened.wait()
        server.send(b"last words")
        await server.hang_up(for_good=True)
        assert await reader.read() == b"last words"
        writer.close()
        with pytest.raises(OSError, match=r".*"):
            await asyncio.open_connection("127.0.0.1", port)


async def test_a_port_that_is_taken_is_named() -> None:
    async with listening(lambda _data: None) as (_, port):
        with pytest.raises(PortError, match=f"cannot listen on 127.0.0.1:{port}"):
            await TcpServer(lambda _data: None).listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("localhost.example", False),
    ],
)
def test_only_a_loopback_address_is_this_machines_alone(host: str, own: bool) -> None:
    assert is_loopback(host) is own
