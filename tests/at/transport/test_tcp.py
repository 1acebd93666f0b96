"""A modem behind a TCP port: addresses, answers, and the end of the connection."""

from __future__ import annotations

import asyncio

import pytest

from at.driver.modem import open_modem
from at.protocol.errors import LinkLost, PortNotFound
from at.transport.tcp import TcpTransport
from tests.support.modem.byte_receiver import ByteReceiver


@pytest.mark.parametrize("name", ["tcp://", "tcp://host", "tcp://:99999", "tcp://[::1"])
async def test_a_malformed_tcp_address_is_refused(name: str) -> None:
    with pytest.raises(PortNotFound):
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
