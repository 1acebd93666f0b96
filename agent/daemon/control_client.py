"""The other side of the local socket: what commands ask of the agent that runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from agent.daemon.control_place import Place, place_of, places
from agent.errors import AgentError
from at.errors import LinkLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from at.transport.base import Receiver

_CONNECT_S = 5.0
_ANSWER_S = 20.0
_LARGEST_ANSWER = 4 * 1024 * 1024
TURN_S = 100.0
"""How long a turn is waited for; the agent itself gives up earlier, and says why."""


class NotRunning(AgentError):
    """No agent runs, or none of this profile."""

    exit_code = 3
    kind = "not-running"


class AgentSaid(AgentError):
    """The running agent refused; exit code and kind are its own."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")), hint=str(error.get("try", "")))
        self.exit_code = int(error.get("exit", 1))  # type: ignore[misc]
        self.kind = str(error.get("kind", "failed"))  # type: ignore[misc]


class Connection:
    """One request and its answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def answer(self, timeout_s: float | None = _ANSWER_S) -> dict[str, Any]:
        """Return the next answer. Raises AgentSaid, NotRunning when the agent ended."""
        try:
            async with asyncio.timeout(timeout_s):
                line = await self.reader.readline()
            answer = json.loads(line) if line else None
        except TimeoutError:
            raise NotRunning("the running agent does not answer", hint="restart it") from None
        except (OSError, ValueError):
            answer = None
        if not isinstance(answer, dict):
            raise NotRunning("the agent ended")
        if "error" in answer:
            raise AgentSaid(answer["error"])
        return answer


@contextlib.asynccontextmanager
async def asking(place: Place, **request: Any) -> AsyncIterator[Connection]:
    """Connect and ask. Raises NotRunning."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            if place.is_socket:
                opened = asyncio.open_unix_connection(place.path, limit=_LARGEST_ANSWER)
            else:
                port, request["token"] = place.read_port()
                opened = asyncio.open_connection("127.0.0.1", port, limit=_LARGEST_ANSWER)
            reader, writer = await opened
    except (OSError, ValueError, KeyError, TimeoutError) as error:
        raise NotRunning("the agent does not run", hint=_how_to_reach_one(place)) from error
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        yield Connection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _how_to_reach_one(place: Place) -> str:
    """Return what to try where nobody listens: perhaps it is another profile's agent that runs."""
    others = [other for other in places(place.path.parent.parent) if other != place]
    if others:
        names = ", ".join(f"--profile {unquote(other.path.stem)}" for other in others)
        return f"is another meant? {names}; else start it: `cellagent run`"
    return "start it: `cellagent run`"


async def ask(state_dir: Path, profile: str, **request: Any) -> dict[str, Any]:
    """Ask the agent of a profile; return its answer. Raises NotRunning, AgentSaid."""
    async with asking(place_of(state_dir, profile), **request) as connection:
        return await connection.answer()


async def find_kit(state_dir: Path, port: str) -> tuple[Place, dict[str, Any]] | None:
    """Return the agent that looks after the kit on `port`, and its entry.

    None if none does, or if it let go of the ports for somebody.
    """
    if port == "virtual:" or port.startswith("replay:"):
        return None  # everybody has one of their own
    for place in places(state_dir):
        try:
            async with asking(place, do="status") as connection:
                status = (await connection.answer())["status"]
        except AgentError:
            continue  # left by one that was killed
        for kit in status["kits"]:
            if same_port(kit["port"], port):
                return None if link_of(kit).get("held_by") else (place, kit)
    return None


def link_of(kit: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of a kit's link."""
    return next(each for each in kit["concerns"] if each["concern"] == "link")


def same_port(one: str, other: str) -> bool:
    """Tell whether two names mean one port: links are followed, zeros before a number ignored."""
    return _place_of_port(one) == _place_of_port(other)


def _place_of_port(port: str) -> str:
    if port.startswith("serial:"):
        return "serial:" + port.removeprefix("serial:").lstrip("0").upper()
    if "/" in port and "://" not in port and not port.startswith("virtual:"):
        return os.path.realpath(port)
    return port


class BorrowedTransport:
    """The modem of a kit that the running agent holds, for as long as this is open."""

    def __init__(self, place: Place, kit: dict[str, Any]) -> None:
        self._place = place
        self._kit = str(kit["name"])
        self._port = str(kit["port"])
        self._stack = contextlib.AsyncExitStack()
        self._connection: Connection | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The port, as the agent names it."""
        return self._port

    async def open(self, receiver: Receiver) -> None:
        """Wait for our turn. Raises AgentSaid, NotRunning."""
        request = {"do": "lease", "kit": self._kit, "who": who()}
        connection = await self._stack.enter_async_context(asking(self._place, **request))
        try:
            await connection.answer(TURN_S)
        except BaseException:
            await self._stack.aclose()
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
            raise LinkLost(f"{self._port}: the running agent ended") from error

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
            raise LinkLost(f"{self._port} is closed")
        return self._connection


def who() -> str:
    """Return how this process is named to others."""
    return f"{Path(sys.argv[0]).name or 'cellagent'} (PID {os.getpid()})"
