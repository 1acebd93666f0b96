"""The modem of a kit that the running agent holds, as a transport of its own."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from agent.daemon.control_client import TURN_S, AgentSaid, Connection, asking, who
from at.errors import LinkLost, PortBusy

if TYPE_CHECKING:
    from agent.daemon.held_kits import HeldKit
    from at.transport.base import Receiver


class BorrowedTransport:
    """The modem of a kit that the running agent holds, for as long as this is open."""

    def __init__(self, kit: HeldKit) -> None:
        self._kit = kit
        self._stack = contextlib.AsyncExitStack()
        self._connection: Connection | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The port, as the agent names it."""
        return self._kit.port

    async def open(self, receiver: Receiver) -> None:
        """Wait for our turn. Raises PortBusy where it does not come, AgentSaid, NotRunning."""
        asked = asking(self._kit.place, do="lease", kit=self._kit.name, who=who())
        connection = await self._stack.enter_async_context(asked)
        try:
            await connection.answer(TURN_S)
        except BaseException as error:
            await self._stack.aclose()
            if isinstance(error, AgentSaid) and error.kind == "kit-busy":
                raise PortBusy(str(error), hint=error.hint, holder="the running agent") from error
            raise
        self._connection = connection
        self._reading = asyncio.ensure_future(self._read(connection, receiver))

    def write(self, data: bytes) -> None:
        """Send bytes. Raises LinkLost once closed."""
        self._open().writer.write(data)

    async def drain(self) -> None:
        """Wait until the agent has taken most of it. Raises LinkLost."""
        try:
            await self._open().writer.drain()
        except OSError as error:
            raise LinkLost(f"{self._kit.port}: the running agent ended") from error

    async def close(self) -> None:
        """Give the modem back. Closing twice is harmless."""
        reading, self._reading = self._reading, None
        self._connection = None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await self._stack.aclose()

    async def _read(self, connection: Connection, receiver: Receiver) -> None:
        reason = "the running agent ended, or lost the kit"
        try:
            while data := await connection.reader.read(4096):
                receiver.data_received(data)
        except OSError as error:
            reason = str(error)
        receiver.connection_lost(OSError(reason))

    def _open(self) -> Connection:
        if self._connection is None or self._connection.writer.is_closing():
            raise LinkLost(f"{self._kit.port} is closed")
        return self._connection
