"""The running agent's side of the local socket: status, reload, hold, the loan of a modem.

A request is one line of JSON, {"do": NAME, …}; so is each answer: {"ok": true, …} or
{"error": {"exit", "kind", "message", "try"}}. A hold, a loan and a window on a console
(`control_console`) end when the connection does.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import secrets
from typing import TYPE_CHECKING, Any, Protocol

from agent.daemon.control.console import show_console
from agent.errors import AgentError, UsageError, exit_code_of
from agent.tasks import cancel_and_wait
from at.protocol.errors import AtError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.daemon.control.socket import ControlSocket
    from agent.daemon.kit.kit import KitAgent
    from agent.daemon.outgoing import Outgoing
    from agent.daemon.status import Board

LONGEST_REQUEST = 65536
"""Bytes of a request's line."""
_REQUEST_S = 10.0  # until a connection must have said what it wants
_LOOK_S = 1.0  # between two looks of one who watches: the outbox tells nobody of its changes
_PAUSE_S = 0.2  # between two states for one who watches
_HANG_UP_S = 1.0  # for the last answer to be read
_SLOW_READER = 1024 * 1024  # bytes that may wait for a borrower

_log = logging.getLogger(__name__)


class Controlled(Protocol):
    """The agent, as far as its clients may ask something of it."""

    board: Board
    outgoing: Outgoing

    async def status(self) -> dict[str, Any]:
        """Return everything that `status --json` shows."""

    async def changed(self) -> None:
        """Wait for the next change of it."""

    async def reload(self) -> None:
        """Read the profile again. Raises ConfigError."""

    def kit(self, name: str) -> KitAgent:
        """Return the kit of a name or a port. Raises UsageError."""


class ControlServer:
    """Listens on the control socket, for this user's own processes."""

    def __init__(self, agent: Controlled, control_socket: ControlSocket) -> None:
        self._agent = agent
        self._socket = control_socket
        self._token = ""
        self._server: asyncio.Server
        self._served: set[asyncio.Task[None]] = set()
        self._does: dict[str, Callable[[_Client, dict[str, Any]], Awaitable[None]]] = {
            "status": self._status,
            "watch": self._watch,
            "reload": self._reload,
            "hold": self._hold,
            "lease": self._lease,
            "outbox": self._outbox,
            "console": self._console,
        }

    async def start(self) -> None:
        """Listen. The socket of an agent that was killed is replaced."""
        path = self._socket.path
        path.unlink(missing_ok=True)
        if self._socket.is_socket:
            before = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(
                    self._connected, path, limit=LONGEST_REQUEST
                )
            finally:
                os.umask(before)
            return
        self._token = secrets.token_urlsafe(32)
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, limit=LONGEST_REQUEST
        )
        self._socket.write_port(self._server.sockets[0].getsockname()[1], self._token)

    async def stop(self) -> None:
        """Stop listening; whoever is connected is cut off."""
        self._server.close()
        await cancel_and_wait(*self._served)
        self._socket.path.unlink(missing_ok=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.add(task)
        client = _Client(reader, writer)
        try:
            await self._answer(client)
        except (OSError, asyncio.CancelledError):
            pass  # it went away, or we do
        finally:
            self._served.discard(task)
            await _hang_up(writer)

    async def _answer(self, client: _Client) -> None:
        try:
            request = await client.request()
            if self._token and not hmac.compare_digest(
                str(request.get("token", "")).encode(), self._token.encode()
            ):
                raise UsageError("the token is not the agent's")
            do = self._does.get(str(request.get("do")))
            if do is None:
                raise UsageError(
                    f"the running agent knows no {request.get('do')!r}",
                    hint="if it is older than this command, restart it",
                )
            await do(client, request)
        except (AgentError, AtError) as error:
            await client.say({"error": error_object(error)})

    async def _status(self, client: _Client, _request: dict[str, Any]) -> None:
        await client.say({"ok": True, "status": await self._agent.status()})

    async def _watch(self, client: _Client, _request: dict[str, Any]) -> None:
        gone = asyncio.ensure_future(client.reader.read())
        shown: dict[str, Any] = {}
        try:
            while not gone.done():
                # Watched from before the look, so that no change falls between the two.
                changed = asyncio.ensure_future(self._agent.changed())
                status = await self._agent.status()
                if status != shown:
                    shown = status
                    await client.say({"ok": True, "status": status})
                ends = {gone, changed}
                await asyncio.wait(ends, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                await asyncio.sleep(_PAUSE_S)
        finally:
            gone.cancel()

    async def _reload(self, client: _Client, _request: dict[str, Any]) -> None:
        await self._agent.reload()
        await client.say({"ok": True})

    async def _outbox(self, client: _Client, request: dict[str, Any]) -> None:
        await client.say({"ok": True, "outbox": await self._agent.outgoing.ask(request)})

    async def _hold(self, client: _Client, request: dict[str, Any]) -> None:
        kit = self._agent.kit(str(request.get("kit", "")))
        async with kit.link.let_go(str(request.get("who", "another program"))[:80]):
            await client.say({"ok": True, "kit": kit.name, "port": kit.kit.port})
            await client.reader.read()  # to its end

    async def _lease(self, client: _Client, request: dict[str, Any]) -> None:
        kit = self._agent.kit(str(request.get("kit", "")))
        await kit.lending.lend(client, str(request.get("who", "another program"))[:80])

    async def _console(self, client: _Client, request: dict[str, Any]) -> None:
        kit = self._agent.kit(str(request.get("kit", "")))
        await show_console(kit, self._agent.board, client.reader, client.writer)


class _Client:
    """One connection; a borrower of a modem, too."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> dict[str, Any]:
        """Return what is asked. Raises UsageError."""
        try:
            async with asyncio.timeout(_REQUEST_S):
                line = await self.reader.readline()
            request = json.loads(line)
        except (TimeoutError, ValueError, RecursionError) as error:
            raise UsageError("a request is one line of JSON") from error
        if not isinstance(request, dict):
            raise UsageError("a request is a JSON object")
        return request

    async def say(self, answer: dict[str, Any]) -> None:
        """Send an answer."""
        self.writer.write(json.dumps(answer).encode() + b"\n")
        async with asyncio.timeout(_REQUEST_S):
            await self.writer.drain()

    async def write_through(self, write: Callable[[bytes], None]) -> None:
        """Pass on what the borrower writes, until it closes."""
        while data := await self.reader.read(4096):
            write(data)

    def data_received(self, data: bytes) -> None:
        """Pass on what the modem says."""
        if self.writer.transport.get_write_buffer_size() > _SLOW_READER:
            self.writer.transport.abort()
        elif not self.writer.is_closing():
            self.writer.write(data)

    def connection_lost(self, _reason: Exception | None) -> None:
        """End with the modem's link."""
        self.writer.close()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection; one that does not read what it was told is cut off."""
    writer.close()
    try:
        async with asyncio.timeout(_HANG_UP_S):
            await writer.wait_closed()
    except OSError:  # a TimeoutError is one
        writer.transport.abort()


def error_object(error: Exception) -> dict[str, Any]:
    """Return an error as the client raises it again."""
    return {
        "exit": exit_code_of(error),
        "kind": getattr(error, "kind", "failed"),
        "message": str(error),
        "try": getattr(error, "hint", ""),
    }
