"""Between a program and the modem: what passes, and which loss of the link is told."""

from __future__ import annotations

import asyncio

from at.protocol.errors import LinkLost
from at.transcripts.relay import Relay


async def test_bytes_pass_both_ways_and_the_first_loss_is_told() -> None:
    to_modem: list[bytes] = []
    to_program: list[bytes] = []
    gone: LinkLost | None = None

    def write(data: bytes) -> None:
        if gone is not None:
            raise gone
        to_modem.append(data)

    lost: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    relay = Relay(write, lost)
    relay.data_received(b"too early")  # the program is not there yet
    relay.send = to_program.append
    relay.receive(b"AT\r")
    relay.data_received(b"OK\r\n")
    assert (to_modem, to_program) == ([b"AT\r"], [b"OK\r\n"])
    relay.connection_lost(None)
    assert not lost.done(), "it was closed by us"
    gone = LinkLost("the port went away")
    relay.receive(b"AT+CFUN?\r")
    relay.connection_lost(LinkLost("told once more"))
    assert lost.result() is gone
