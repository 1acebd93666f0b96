"""The agent's side of the control socket: status, reload, outbox, hold, lease, console.

A request is one line of JSON, {"do": NAME, …}; so is each answer: {"ok": true, …} or
{"error": {"exit", "kind", "message", "try"}}. A hold, a lease and a window on a console
(`agent.daemon.control.console`) end when the connection does.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from typing import TYPE_CHECKING, Any, Protocol

from agent.daemon.control.console import show_console
from agent.daemon.kit.link import hold, lease
from agent.errors import AgentError, UsageError, exit_code_of
from agent.outbox import Outbox, queries
from agent.tasks import cancel_and_wait, first_of, wait_for_event
from at.protocol.errors import AtError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.daemon.control.socket import ControlSocket
    from agent.daemon.kit.kit import KitAgent
    from agent.daemon.status import StatusRegistry

LONGEST_REQUEST = 65536
"""Bytes of a request's line."""
_REQUEST_S = 10.0  # until a connection must have sent its request
_POLL_S = 1.0  # the longest between two states for `watch`: the outbox signals no change
_PAUSE_S = 0.2  # the shortest between two states for `watch`
_HANG_UP_S = 1.0  # for the last answer to be read
_SLOW_READER = 1024 * 1024  # bytes that may wait for the holder of a lease


class Controlled(Protocol):
    """The part of the agent that requests may use."""

    registry: StatusRegistry

    @property
    def outbox(self) -> Outbox:
        """The agent's outbox."""

    def deliver_now(self) -> None:
        """Deliver at once what waits for its next try."""

    async def status(self) -> dict[str, Any]:
        """Return the object that `status --json` prints."""

    async def reload(self) -> None:
        """Read the profile again. Raises ConfigError."""

    def kit(self, name: str) -> KitAgent:
        """Return the kit of a name or a port. Raises UsageError."""


class ControlServer:
    """Listens on the control socket, for this user's own processes."""

    def __init__(self, agent: Controlled, control_socket: ControlSocket) -> None:
        self._agent = agent
        self._socket = control_socket
        self._token = "" if control_socket.is_socket else secrets.token_urlsafe(32)
        self._server: asyncio.Server
        self._connections: set[asyncio.Task[None]] = set()
        self._handlers: dict[str, Callable[[_Client, dict[str, Any]], Awaitable[None]]] = {
            "status": self._status,
            "watch": self._watch,
            "reload": self._reload,
            "hold": self._hold,
            "lease": self._lease,
            "outbox": self._outbox,
            "console": self._console,
        }

    async def start(self) -> None:
        """Listen. The socket of an agent that was killed is replaced. Raises OSError."""
        self._server = await self._socket.listen(
            self._connected, self._token, limit=LONGEST_REQUEST
        )

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        self._server.close()
        await cancel_and_wait(*self._connections)
        self._socket.path.unlink(missing_ok=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        client = _Client(reader, writer)
        try:
            await self._answer(client)
        except (OSError, asyncio.CancelledError):
            pass  # the client went away, or the agent stops
        finally:
            self._connections.discard(task)
            await _hang_up(writer)

    async def _answer(self, client: _Client) -> None:
        try:
            request = await client.request()
            if self._token and not hmac.compare_digest(
                str(request.get("token", "")).encode(), self._token.encode()
            ):
                raise UsageError("the token is not the agent's")
            handler = self._handlers.get(str(request.get("do")))
            if handler is None:
                raise UsageError(
                    f"the running agent knows no {request.get('do')!r}",
                    hint="if it is older than this command, restart it",
                )
            await handler(client, request)
        except (AgentError, AtError) as error:
            await client.send({"error": error_object(error)})

    async def _status(self, client: _Client, _request: dict[str, Any]) -> None:
        await client.send({"ok": True, "status": await self._agent.status()})

    async def _watch(self, client: _Client, _request: dict[str, Any]) -> None:
        await first_of(client.reader.read(), self._send_changes(client))

    async def _send_changes(self, client: _Client) -> None:
        sent: dict[str, Any] = {}
        while True:
            # Of before the status is read: no later change is missed.
            change = self._agent.registry.next_change
            if (status := await self._agent.status()) != sent:
                sent = status
                await client.send({"ok": True, "status": status})
            await wait_for_event(change, _POLL_S)
            await asyncio.sleep(_PAUSE_S)

    async def _reload(self, client: _Client, _request: dict[str, Any]) -> None:
        await self._agent.reload()
        await client.send({"ok": True})

    async def _outbox(self, client: _Client, request: dict[str, Any]) -> None:
        await client.send({"ok": True, "outbox": await self._query_outbox(request)})

    async def _query_outbox(self, request: dict[str, Any]) -> dict[str, Any]:
        """List, drop or flush for a command that cannot open the outbox itself."""
        outbox, parked = self._agent.outbox, request.get("parked") is True
        match request.get("what"):
            case "list":
                limit = request.get("limit")
                return await queries.list_items(outbox, limit if isinstance(limit, int) else 1000)
            case "drop":
                ids = [number for number in request.get("ids", []) if isinstance(number, int)]
                everything = request.get("everything") is True
                return await queries.drop_items(outbox, ids, parked=parked, everything=everything)
            case "flush":
                totals = await queries.retry_items(outbox, parked=parked)
                self._agent.deliver_now()
                return totals
        raise UsageError("of its outbox the agent can be asked to list, drop or flush")

    async def _hold(self, client: _Client, request: dict[str, Any]) -> None:
        kit = self._agent.kit(str(request.get("kit", "")))
        async with hold(kit.link, _program_name(request)):
            await client.send({"ok": True, "kit": kit.name, "port": kit.settings.port})
            await client.reader.read()  # until the client closes

    async def _lease(self, client: _Client, request: dict[str, Any]) -> None:
        kit = self._agent.kit(str(request.get("kit", "")))
        await lease(kit.link, kit.name, client, _program_name(request))

    async def _console(self, client: _Client, request: dict[str, Any]) -> None:
        kit = self._agent.kit(str(request.get("kit", "")))
        await show_console(kit, self._agent.registry, client.reader, client.writer)


def _program_name(request: dict[str, Any]) -> str:
    """Return the name of the program that sent the request, for `status`."""
    return str(request.get("who", "another program"))[:80]


class _Client:
    """One connection; it can be the holder of a lease, too (`LeaseHolder`)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> dict[str, Any]:
        """Read the request. Raises UsageError."""
        try:
            async with asyncio.timeout(_REQUEST_S):
                line = await self.reader.readline()
            request = json.loads(line)
        except (TimeoutError, ValueError, RecursionError) as error:
            raise UsageError("a request is one line of JSON") from error
        if not isinstance(request, dict):
            raise UsageError("a request is a JSON object")
        return request

    async def send(self, answer: dict[str, Any]) -> None:
        """Send an answer."""
        self.writer.write(json.dumps(answer).encode() + b"\n")
        async with asyncio.timeout(_REQUEST_S):
            await self.writer.drain()

    async def write_through(self, write: Callable[[bytes], None]) -> None:
        """Pass on what the client writes, until it closes."""
        while data := await self.reader.read(4096):
            write(data)

    def data_received(self, data: bytes) -> None:
        """Pass on bytes of the modem; a client that does not read them is cut off."""
        if self.writer.transport.get_write_buffer_size() > _SLOW_READER:
            self.writer.transport.abort()
        elif not self.writer.is_closing():
            self.writer.write(data)

    def connection_lost(self, _reason: Exception | None) -> None:
        """Close: the modem's link is lost."""
        self.writer.close()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection; a client that does not read its last answer is cut off."""
    writer.close()
    try:
        async with asyncio.timeout(_HANG_UP_S):
            await writer.wait_closed()
    except OSError:  # a TimeoutError is one
        writer.transport.abort()


def error_object(error: Exception) -> dict[str, Any]:
    """Return an error as an object, from which the client raises AgentRefused."""
    return {
        "exit": exit_code_of(error),
        "kind": getattr(error, "kind", "failed"),
        "message": str(error),
        "try": getattr(error, "hint", ""),
    }
