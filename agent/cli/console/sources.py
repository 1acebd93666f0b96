"""Sources of `cellagent console`: the kit's port, or the running agent that holds the kit."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from agent.cli.console.window import ConsoleWindow
from agent.cli.framework.session import held_kit
from agent.cli.framework.typed_input import InputLines
from agent.config.profile import KitSettings
from agent.console.line_classifier import ConsoleCounts, ConsoleItem, ConsoleReader
from agent.daemon.control import protocol
from agent.daemon.control.client import AgentConnection, NotRunning, open_request
from agent.daemon.control.leased_transport import HeldKit
from agent.daemon.control.liveness import NotAnswering, answers
from agent.errors import with_hint
from agent.tasks import cancel_and_wait
from at.ports.usb import Listing, system_ports
from at.transport.base import labelled

if TYPE_CHECKING:
    from agent.wiring.forwarding import HandleItems

_RETRY_S = 1.0  # between two tries to reach a port or an agent that went away
_LONGEST_LINE = 32 * 1024 * 1024  # bytes: a core dump of 16 MiB as base64


class TypedLines:
    """The lines for the kit: those of --send, then the keyboard's, over any number of connections.

    Each line is sent once.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._first = deque(lines)
        self._keyboard: InputLines | None = None

    @contextlib.asynccontextmanager
    async def sent_to(self, send: Callable[[str], None]) -> AsyncIterator[None]:
        """Call `send` with each line, without its end, while the block runs."""
        sending = asyncio.create_task(self._send_all(send))
        try:
            yield
        finally:
            await cancel_and_wait(sending)

    async def _send_all(self, send: Callable[[str], None]) -> None:
        while self._first:
            send(self._first[0])
            self._first.popleft()
        if self._keyboard is None:
            if not sys.stdin.isatty():
                return
            self._keyboard = InputLines()
        async for line in self._keyboard:
            send(line.decode("utf-8", "replace").rstrip("\r\n"))


class PortSource:
    """The console read from its own port, until the command ends; waited for while it is away."""

    def __init__(
        self,
        kit: KitSettings,
        window: ConsoleWindow,
        handle: HandleItems,
        lines: TypedLines,
        listing: Listing = system_ports,
    ) -> None:
        """`handle` stores and shows items; notes go to `window`; `lines` are sent to the kit."""
        self._kit = kit
        self._window = window
        self._handle = handle
        self._lines = lines
        self._listing = listing
        self._reader = ConsoleReader()

    @property
    def counts(self) -> dict[str, int]:
        """How much was read so far, by kind."""
        return asdict(self._reader.counts)

    async def run(self) -> None:
        """Read the port until it ends for good; wait for it while it is away.

        Raises PortError where it cannot be opened at first.
        """
        from agent.console.port import find_console
        from at.protocol.errors import PortError

        found = await find_console(self._kit, self._window.note, self._listing)
        port = found.port
        if found.data:
            await self._handle(self._reader.receive(found.data))
        first = True
        while True:
            try:
                ended = await self._read(port)
            except PortError:
                if first:
                    raise
            else:
                if ended:
                    return
                self._window.note(f"{port} went away; waiting for it to come back")
            first = False
            await asyncio.sleep(_RETRY_S)

    async def finish(self) -> None:
        """Handle a last line that has no end, and an unfinished dump."""
        await self._handle(self._reader.finish())

    async def _read(self, port: str) -> bool:
        """Read one connection to its end; return True if nothing more can come after it."""
        from agent.console.port import ByteQueue, console_transport

        receiver = ByteQueue()
        transport = console_transport(port, self._kit.baud, self._listing)
        self._listing = system_ports  # what went away may come back as another device
        await transport.open(receiver)
        self._window.note(f"{labelled(transport.name)} Ctrl-C ends")
        try:
            async with self._lines.sent_to(lambda line: transport.write(line.encode() + b"\r")):
                while (data := await receiver.next()) is not None:
                    await self._handle(self._reader.receive(data))
                    self._window.announce_dump(self._reader.dump_bytes)
        finally:
            await transport.close()
            # Of what came last nothing is handled yet where this is cancelled.
            await self._handle(self._reader.receive(receiver.take()))
        # What comes after a break is not the rest of this line, nor of this dump.
        await self.finish()
        return receiver.reason is None or port.startswith(("replay:", "virtual:"))


class AgentSource:
    """The console as the running agent reads it, from one agent to the next."""

    def __init__(
        self, kit: HeldKit, window: ConsoleWindow, handle: HandleItems, lines: TypedLines
    ) -> None:
        self._kit = kit
        self._window = window
        self._handle = handle
        self._lines = lines
        self._port = ""
        self._in_trouble = False
        self._lost = 0
        self._before = asdict(ConsoleCounts())  # what earlier agents counted
        self._now = ConsoleCounts()

    @property
    def counts(self) -> dict[str, int]:
        """How much was read so far, by kind, and how much of it was not shown."""
        total = {name: value + self._before[name] for name, value in asdict(self._now).items()}
        return {**total, "not_shown": self._lost}

    async def run(self) -> None:
        """Read until cancelled; wait for another agent where one has ended.

        Raises AgentRefused where the agent refuses.
        """
        while True:
            kit = self._kit
            request = protocol.ConsoleRequest(kit.name)
            try:
                async with open_request(
                    kit.socket, request, longest_answer=_LONGEST_LINE
                ) as connection:
                    await self._read(connection)
            except NotRunning as error:
                self._window.note(f"{error}; waiting for it to run again")
            total = self.counts
            self._before = {name: total[name] for name in self._before}
            self._now = ConsoleCounts()
            self._kit = await _wait_for_agent(kit.port)

    async def finish(self) -> None:
        """Do nothing: the agent reads on."""

    async def _read(self, connection: AgentConnection) -> None:
        first = await connection.answer(protocol.ConsoleAnswer)
        self._port = first.port
        self._in_trouble = False
        self._window.note(f"{self._port}, through the running agent (PID {first.pid}): Ctrl-C ends")

        def send(line: str) -> None:
            connection.send(protocol.TypedLine(line))

        async with self._lines.sent_to(send):
            while True:
                await self._handle_notice(await self._next_notice(connection))

    async def _next_notice(self, connection: AgentConnection) -> protocol.Notice | ConsoleItem:
        """Return the next notice; say that the agent hangs, and that it goes on."""
        while True:
            try:
                return await connection.notice()
            except NotAnswering as error:
                self._window.note(with_hint(f"{error}; nothing is shown meanwhile", error.hint))
            await answers(connection.control_socket)
            self._window.note("the running agent answers again, or has ended")

    async def _handle_notice(self, notice: protocol.Notice | ConsoleItem) -> None:
        match notice:
            case protocol.DumpNotice():
                self._window.announce_dump(notice.coming)
            case protocol.CountsNotice():
                self._now = notice.counts
            case protocol.LostNotice():
                self._lost += notice.lost
                self._window.show_lost(notice.lost)
            case protocol.TypedAnswer():
                self._window.show_answer(notice.answer)
            case protocol.RefusedLine():
                self._window.note(with_hint(f"not typed: {notice.refused}", notice.hint))
            case protocol.TroubleNotice(trouble="") if self._in_trouble:
                self._in_trouble = False
                self._window.note(f"{self._port} is back")
            case protocol.TroubleNotice():
                self._in_trouble = bool(notice.trouble)
                if notice.trouble:
                    text = with_hint(f"{self._port}: {notice.trouble}", notice.hint)
                    self._window.note(text)
            case _:
                await self._handle([notice])


async def _wait_for_agent(port: str) -> HeldKit:
    while True:
        if found := await held_kit(port, system_ports, to_watch=True):
            return found
        await asyncio.sleep(_RETRY_S)
