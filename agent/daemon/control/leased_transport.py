"""Kits that a running agent holds, and a lease of one's modem as a transport."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from agent.daemon.control import client, protocol
from agent.daemon.control.liveness import NotAnswering, watch
from agent.daemon.control.socket import ControlSocket, control_sockets
from agent.daemon.snapshot import AgentProcess, ConsoleStatus, LinkStatus
from agent.tasks import cancel_and_wait, first_of
from at.ports.usb import Listing, same_port
from at.protocol.errors import LinkLost, PortBusy
from at.transport.base import Receiver


@dataclass(frozen=True, slots=True)
class HeldKit:
    """A kit that an agent holds, as its status shows it."""

    socket: ControlSocket
    agent: AgentProcess
    name: str
    port: str
    link: LinkStatus
    console: ConsoleStatus

    @property
    def is_released(self) -> bool:
        """Whether the agent has released the ports to another program (`cellagent hold`)."""
        return bool(self.link.held_by)


async def held_kits(state_dir: Path) -> list[HeldKit]:
    """Return the kits of all agents that run with this state folder.

    Raises NotUnderstood for one of another version, NotAnswering for one that hangs: nobody knows
    which kits it holds.
    """
    kits: list[HeldKit] = []
    for socket in control_sockets(state_dir):
        try:
            async with client.open_request(socket, protocol.StatusRequest()) as connection:
                status = (await connection.answer(protocol.StatusAnswer)).status
        except (client.NotRunning, client.AgentRefused):
            continue  # the agent was killed, and left its socket
        for kit in status.kits:
            link, console = kit.concern(LinkStatus), kit.concern(ConsoleStatus)
            kits.append(HeldKit(socket, status.agent, kit.name, kit.port, link, console))
    return kits


async def find_held_kit(
    state_dir: Path, port: str, *, to_watch: bool, listing: Listing
) -> HeldKit | None:
    """Return the kit on `port` if an agent holds it; None if it released it to a program.

    With `to_watch` a kit is found by its console's port, too, and also while it is released: a
    window that opened the port then would keep the agent out of it.
    """
    if port == "virtual:" or port.startswith("replay:") or not any(control_sockets(state_dir)):
        return None  # these exist in one process only
    for kit in await held_kits(state_dir):
        names = [kit.port, kit.console.port] if to_watch else [kit.port]
        if any(same_port(name, port, listing) for name in names):
            return kit if to_watch or not kit.is_released else None
    return None


class LeasedTransport:
    """The modem of a kit that the running agent holds; the lease lasts while this is open."""

    def __init__(self, kit: HeldKit) -> None:
        self._kit = kit
        self._stack = contextlib.AsyncExitStack()
        self._connection: client.AgentConnection | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The port, as the agent names it."""
        return self._kit.port

    async def open(self, receiver: Receiver) -> None:
        """Wait for the lease. Raises PortBusy, AgentRefused, NotRunning, NotAnswering."""
        request = client.open_request(
            self._kit.socket, protocol.LeaseRequest(self._kit.name, client.process_name())
        )
        connection = await self._stack.enter_async_context(request)
        try:
            await connection.answer(protocol.LeaseAnswer, client.TURN_S)
        except BaseException as error:
            await self._stack.aclose()
            if isinstance(error, client.AgentRefused) and error.kind == "kit-busy":
                raise PortBusy(str(error), hint=error.hint, holder="the running agent") from error
            raise
        self._connection = connection
        self._reading = asyncio.ensure_future(self._read(connection, receiver))

    def write(self, data: bytes) -> None:
        """Send bytes. Raises LinkLost once closed."""
        self._open().writer.write(data)

    async def drain(self) -> None:
        """Wait until the agent has read most of what was written. Raises LinkLost."""
        try:
            await self._open().writer.drain()
        except OSError as error:
            raise LinkLost(f"{self._kit.port}: the running agent ended") from error

    async def close(self) -> None:
        """End the lease. Closing twice is harmless."""
        reading, self._reading = self._reading, None
        self._connection = None
        if reading is not None:
            await cancel_and_wait(reading)
        await self._stack.aclose()

    async def _read(self, connection: client.AgentConnection, receiver: Receiver) -> None:
        async def read() -> None:
            while data := await connection.reader.read(4096):
                receiver.data_received(data)

        reason: Exception = OSError("the running agent ended, or lost the kit")
        try:
            await first_of(read(), watch(connection.control_socket))
        except OSError as error:
            reason = error
        except NotAnswering as error:
            reason = error
            connection.writer.transport.abort()  # it reads nothing any more
        receiver.connection_lost(reason)

    def _open(self) -> client.AgentConnection:
        if self._connection is None or self._connection.writer.is_closing():
            raise LinkLost(f"{self._kit.port} is closed")
        return self._connection
