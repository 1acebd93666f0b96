"""The serial port with threads: order, room, and an event loop that ends first."""

from __future__ import annotations

import asyncio
import os

import pytest

from at.protocol.errors import LinkLost
from at.transport.threaded import ThreadedSerialTransport
from tests.support.modem.byte_receiver import ByteReceiver
from tests.support.modem.pty_far_end import PtyFarEnd

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")


async def test_bytes_leave_in_the_order_in_which_they_were_written() -> None:
    with PtyFarEnd(lambda line: b"got " + line + b"\r\n") as far:
        received = ByteReceiver()
        transport = ThreadedSerialTransport(far.path)
        await transport.open(received)
        for number in range(50):
            transport.write(b"%d;" % number)
        transport.write(b"\r")
        await transport.drain()
        await received.until(b"got " + b"".join(b"%d;" % number for number in range(50)))
        await transport.close()


async def test_it_may_be_opened_again_once_it_is_closed() -> None:
    with PtyFarEnd() as far:
        transport = ThreadedSerialTransport(far.path)
        for _ in range(2):
            received = ByteReceiver()
            await transport.open(received)
            transport.write(b"AT\r")
            await received.until(b"OK\r\n")
            await transport.close()
            assert received.lost == [None]


async def test_who_waits_for_room_learns_that_the_port_is_gone() -> None:
    far = PtyFarEnd()
    asyncio.get_running_loop().remove_reader(far.master)
    transport = ThreadedSerialTransport(far.path)
    await transport.open(ByteReceiver())
    transport.write(b"x" * 300_000)
    waiting = asyncio.create_task(transport.drain())
    await asyncio.sleep(0)
    await transport.close()
    with pytest.raises(LinkLost):
        async with asyncio.timeout(60):
            await waiting
    far.unplug()


@pytest.mark.contract("C2")
async def test_a_port_that_goes_away_is_told_with_its_reason() -> None:
    far, received = PtyFarEnd(), ByteReceiver()
    transport = ThreadedSerialTransport(far.path)
    await transport.open(received)
    far.unplug()
    await received.until(lost=True)
    await transport.close()
    [reason] = received.lost
    assert reason is not None
