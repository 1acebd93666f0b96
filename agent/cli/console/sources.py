"""The console of a kit that the running agent holds: shown as the agent hears it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import deque
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent.cli.shell.terminal import typed_lines
from agent.console.reader import ConsoleCounts, ConsoleReader
from agent.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from agent.cli.console.window import ConsoleWindow
    from agent.config.profile import KitSettings
    from agent.console.reader import ConsoleItem
    from agent.daemon.control.client import AgentConnection
    from agent.daemon.control.lease import HeldKit


class Typing:
    """Types each line once, over however many connections."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._first = deque(lines)
        self._keyboard: asyncio.StreamReader | None = None

    @contextlib.asynccontextmanager
    async def into(self, send: Callable[[str], None]) -> AsyncIterator[None]:
        """Hand lines, without their ends, to `send` while the block runs."""
        typing = asyncio.create_task(self._type(send))
        try:
            yield
        finally:
            await cancel_and_wait(typing)

    async def _type(self, send: Callable[[str], None]) -> None:
        while self._first:
            send(self._first[0])
            self._first.popleft()
        if self._keyboard is None:
            if not sys.stdin.isatty():
                return
            self._keyboard = typed_lines()
        async for line in self._keyboard:
            send(line.decode("utf-8", "replace").rstrip("\r\n"))


_AGAIN_S = 1.0  # between two looks for a port that went away


class Listening:
    """The port of one console, from plug to plug."""

    def __init__(
        self,
        kit: KitSettings,
        window: ConsoleWindow,
        take: Callable[[list[ConsoleItem]], Awaitable[None]],
        typing: Typing,
    ) -> None:
        """`take` keeps and shows what was heard."""
        self._kit = kit
        self._window = window
        self._take = take
        self._typing = typing
        self._reader = ConsoleReader()

    @property
    def counts(self) -> dict[str, int]:
        """What was heard so far, by name."""
        return asdict(self._reader.counts)

    async def run(self) -> None:
        """Read the console until it ends for good; a port that went away is waited for."""
        from agent.console.port import find_console
        from at.protocol.errors import PortError

        port = await find_console(self._kit, self._window.note)
        waiting = False
        first = True
        while True:
            try:
                ended = await self._read(port)
            except PortError as error:
                if first:
                    raise
                if not waiting:
                    self._window.note(f"{error}; waiting for it to come back")
                waiting = True
            else:
                if ended:
                    return
                self._window.note(f"{port} went away; waiting for it to come back")
                waiting = True
            first = False
            await asyncio.sleep(_AGAIN_S)

    async def finish(self) -> None:
        """End the last line and what is in progress."""
        await self._take(self._reader.finish())

    async def _read(self, port: str) -> bool:
        """Read one connection to its end; return whether nothing more can come after it."""
        from agent.console.port import ByteQueue, console_transport

        receiver = ByteQueue()
        transport = console_transport(port, self._kit.baud)
        await transport.open(receiver)
        self._window.note(f"{transport.name}: Ctrl-C ends")
        try:
            async with self._typing.into(lambda line: transport.write(line.encode() + b"\r")):
                while (data := await receiver.next()) is not None:
                    await self._take(self._reader.receive(data))
                    self._window.show_coming(self._reader.dump_bytes)
        finally:
            await transport.close()
        # What comes after a break is not the rest of this line, nor of this dump.
        await self.finish()
        return receiver.reason is None or port.startswith(("replay:", "virtual:"))


_LONGEST_LINE = 32 * 1024 * 1024  # bytes: a core dump of 16 MiB as base64


class Watching:
    """One window on the console of one kit, from agent to agent."""

    def __init__(
        self,
        kit: HeldKit,
        window: ConsoleWindow,
        take: Callable[[list[ConsoleItem]], Awaitable[None]],
        typing: Typing,
    ) -> None:
        """`take` keeps and shows what was heard."""
        self._kit = kit
        self._window = window
        self._take = take
        self._typing = typing
        self._port = ""
        self._troubled = False
        self._lost = 0
        self._before = asdict(ConsoleCounts())  # what earlier agents counted
        self._now: dict[str, int] = {}

    @property
    def counts(self) -> dict[str, int]:
        """What was heard so far, by name, and how much of it was not shown."""
        heard = {name: value + self._now.get(name, 0) for name, value in self._before.items()}
        return {**heard, "not_shown": self._lost}

    async def run(self) -> None:
        """Show what is heard until cancelled; an agent that ended is waited for.

        Raises AgentSaid where the agent refuses.
        """
        from agent.daemon.control.client import NotRunning, open_request

        while True:
            kit = self._kit
            asked = open_request(
                kit.socket, longest_answer=_LONGEST_LINE, do="console", kit=kit.name
            )
            try:
                async with asked as connection:
                    await self._connected(connection)
            except NotRunning as error:
                self._window.note(f"{error}; waiting for it to run again")
            heard = self.counts
            self._before, self._now = {name: heard[name] for name in self._before}, {}
            self._kit = await _found_again(kit.port)

    async def finish(self) -> None:
        """Do nothing more: the agent goes on."""

    async def _connected(self, connection: AgentConnection) -> None:
        first = await connection.answer()
        self._port = first["port"]
        self._troubled = False
        self._window.note(
            f"{self._port}, through the running agent (PID {first['pid']}): Ctrl-C ends"
        )

        def send(line: str) -> None:
            connection.writer.write(json.dumps({"type": line}).encode() + b"\n")

        async with self._typing.into(send):
            while True:
                await self._heard(await connection.answer(None))

    async def _heard(self, told: dict[str, Any]) -> None:
        from agent.console.reader import decode

        if "is" in told:
            await self._take([decode(told)])
        elif "coming" in told:
            self._window.show_coming(told["coming"])
        elif "counts" in told:
            self._now = told["counts"]
        elif "lost" in told:
            self._lost += told["lost"]
            self._window.show_lost(told["lost"])
        elif "answer" in told:
            self._window.show_answer(told["answer"])
        elif "refused" in told:
            self._window.note(_sentence(f"not typed: {told['refused']}", told["try"]))
        elif told["trouble"]:
            self._troubled = True
            self._window.note(_sentence(f"{self._port}: {told['trouble']}", told["try"]))
        elif self._troubled:
            self._troubled = False
            self._window.note(f"{self._port} is back")


async def _found_again(port: str) -> HeldKit:
    from agent.cli.shell.session import held_kit

    while True:
        if found := await held_kit(port, to_watch=True):
            return found
        await asyncio.sleep(_AGAIN_S)


def _sentence(text: str, way_out: str) -> str:
    return f"{text}; try: {way_out}" if way_out else text
