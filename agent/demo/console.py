"""The kit's console in the demonstration: a crash is printed once, and caught."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump
from agent.console.reader import ConsoleReader
from agent.observability.ingest.device_identity import IdentityTracker
from agent.wiring.forwarding import Forwarder
from at.driver.opening import transport_of

if TYPE_CHECKING:
    from agent.console.reader import ConsoleItem
    from agent.demo.stage import Stage
    from agent.observability.ingest.device_identity import DeviceIdentity
    from agent.outbox import Outbox

_WITHIN_S = 10.0


class _Listener:
    """A receiver that keeps the bytes of the console until they are asked for."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()

    def data_received(self, data: bytes) -> None:
        """Keep them."""
        self.heard.put_nowait(data)

    def connection_lost(self, reason: Exception | None) -> None:
        """Nothing more comes: who waits runs into the deadline."""


async def caught_crash(stage: Stage, outbox: Outbox, identity: DeviceIdentity) -> tuple[int, int]:
    """Crash the kit and have it export its chunks; return how many dumps and chunks were kept."""
    listener = _Listener()
    port = transport_of(stage.console_port, rtscts=False)
    await port.open(listener)
    try:
        stage.kit.crash()
        async with asyncio.timeout(_WITHIN_S):
            forwarder, reader = Forwarder(outbox, IdentityTracker.of(identity)), ConsoleReader()
            dumps = await _until(CapturedDump, listener, reader, forwarder)
            port.write(b"mflt export\r")
            chunks = await _until(ChunkLine, listener, reader, forwarder)
    finally:
        await port.close()
    return dumps, chunks


async def _until(
    wanted: type[ConsoleItem], listener: _Listener, reader: ConsoleReader, forwarder: Forwarder
) -> int:
    """Read on until something of a kind was heard and the console is quiet; return how many."""
    count = 0
    while not count or not listener.heard.empty():
        items = reader.receive(await listener.heard.get())
        await forwarder.forward(items, datetime.now(UTC))
        count += sum(isinstance(item, wanted) for item in items)
    return count
