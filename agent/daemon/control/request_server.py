"""Listens on a control socket for the requests of this user's own processes, one a connection.

What is said is in `agent.daemon.control.protocol`; what a request does is its caller's.
"""

import asyncio
import hmac
import secrets
import select
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent.daemon.control import protocol
from agent.daemon.control.socket import ControlSocket, hang_up
from agent.errors import AgentError, UsageError, exit_code_of
from agent.tasks import cancel_and_wait
from at.protocol.errors import AtError

LONGEST_REQUEST = 65536
"""Bytes of a request's line."""
_REQUEST_S = 10.0  # until a connection must have sent its request
_TAKEN_S = 60.0  # for what the holder of a lease writes: a slow line, or one that takes nothing
_SLOW_READER = 1024 * 1024  # bytes that may wait for the holder of a lease


class Client:
    """One connection; it can be the holder of a lease, too (`LeaseHolder`)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self, token: str) -> protocol.AnyRequest:
        """Read the request, which must have the `token` unless that is "". Raises UsageError."""
        try:
            async with asyncio.timeout(_REQUEST_S):
                message = protocol.parse(await self.reader.readline())
        except (TimeoutError, ValueError) as error:
            raise UsageError("a request is one line of JSON") from error
        given = str(message.pop("token", ""))
        if token and not hmac.compare_digest(given.encode(errors="replace"), token.encode()):
            raise UsageError("the token is not the agent's")
        hint = "if it is older than this command, restart it"
        if (name := str(message.get("do"))) not in protocol.REQUESTS:
            raise UsageError(f"the running agent knows no {message.get('do')!r}", hint=hint)
        try:
            return protocol.request_of(message)
        except ValueError as error:
            raise UsageError(
                f"the running agent does not understand this {name}: {error}", hint=hint
            ) from error

    @property
    def has_gone(self) -> bool:
        """Whether the client has gone meanwhile: the agent was stopped, or hung for a while.

        One that only writes no more still wants its answer. Not told on Windows: it has no `poll`.
        """
        if sys.platform == "win32":
            return False
        poll = select.poll()
        poll.register(self.writer.get_extra_info("socket").fileno(), 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    async def send(self, answer: msgspec.Struct) -> None:
        """Send an answer."""
        await self.send_line(protocol.encode(answer))

    async def send_line(self, line: bytes) -> None:
        """Send an answer that is encoded."""
        self.writer.write(line)
        async with asyncio.timeout(_REQUEST_S):
            await self.writer.drain()

    async def write_through(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Pass on what the client writes, as fast as it is taken, until the client closes."""
        while data := await self.reader.read(4096):
            async with asyncio.timeout(_TAKEN_S):
                await write(data)

    def data_received(self, data: bytes) -> None:
        """Pass on bytes of the modem; a client that does not read them is cut off."""
        if self.writer.transport.get_write_buffer_size() > _SLOW_READER:
            self.writer.transport.abort()
        elif not self.writer.is_closing():
            self.writer.write(data)

    def connection_lost(self, _reason: Exception | None) -> None:
        """Close: the modem's link is lost."""
        self.writer.close()


@dataclass
class RequestServer:
    """Takes requests; `handle` answers them, and its errors are told to the client."""

    control_socket: ControlSocket
    handle: Callable[[protocol.AnyRequest, Client], Awaitable[None]]

    def __post_init__(self) -> None:
        self._token = "" if self.control_socket.is_socket else secrets.token_urlsafe(32)
        self._server: asyncio.Server
        self._listens_at: tuple[int, int] | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. The socket of an agent that was killed is replaced. Raises OSError."""
        self._server = await self.control_socket.listen(
            self._connected, self._token, limit=LONGEST_REQUEST
        )
        self._listens_at = _identity(self.control_socket.path)

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        self._server.close()
        await cancel_and_wait(*self._connections)
        path = self.control_socket.path
        if _identity(path) == self._listens_at:  # else it was removed, and another agent's is there
            path.unlink(missing_ok=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        client = Client(reader, writer)
        try:
            await self._answer(client)
        except (OSError, asyncio.CancelledError):
            pass  # the client went away, or the agent stops
        finally:
            self._connections.discard(task)
            await hang_up(writer)

    async def _answer(self, client: Client) -> None:
        try:
            request = await client.request(self._token)
            if not client.has_gone:
                await self.handle(request, client)
        except (AgentError, AtError) as error:
            await client.send(protocol.ErrorAnswer(error_object(error)))


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def error_object(error: Exception) -> protocol.ErrorObject:
    """Return an error for the client, which raises AgentRefused from it."""
    kind, hint = getattr(error, "kind", "failed"), getattr(error, "hint", "")
    return protocol.ErrorObject(exit_code_of(error), kind, str(error), hint)
