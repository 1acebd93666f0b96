"""A port of the virtual modem on TCP: one client at a time, as on a serial port."""

import asyncio
import contextlib
import ipaddress
from collections.abc import Callable

from at.protocol.errors import PortError

_DRAIN_TIMEOUT_S = 2.0
_BACKLOG = 256 * 1024  # bytes that wait for a client that does not read, before it is disconnected


class TcpServer:
    """Listens; calls `received` with the bytes of the current client."""

    def __init__(self, received: Callable[[bytes], None]) -> None:
        self._received = received
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.port = ""
        self.opened: Callable[[], None] = lambda: None
        """Called when a client has connected."""

    async def listen(self, host: str, port: int) -> None:
        """Listen on an address; `port` is then "tcp://host:port". Raises PortError."""
        try:
            self._server = await asyncio.start_server(self._client, host, port)
        except OSError as error:
            raise PortError(
                f"cannot listen on {host}:{port}: {error.strerror or error}",
                hint="give another port, or port 0 for any that is free",
            ) from error
        bound = self._server.sockets[0].getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        self.port = f"tcp://{shown}:{bound[1]}"

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._writer is not None:
            writer.close()  # the port is taken
            return
        self._writer = writer
        self.opened()
        try:
            while data := await reader.read(65536):
                self._received(data)
        except ConnectionError:
            pass
        finally:
            self._writer = None
            writer.close()

    def send(self, data: bytes) -> None:
        """Send bytes, if a client is connected."""
        writer = self._writer
        if writer is None or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > _BACKLOG:
            writer.transport.abort()
            return
        writer.write(data)

    async def hang_up(self, *, for_good: bool) -> None:
        """Disconnect the client once its bytes are sent; `for_good` also stops listening."""
        if for_good and self._server is not None:
            self._server.close()
        writer = self._writer
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_DRAIN_TIMEOUT_S):
                    await writer.wait_closed()

    async def close(self) -> None:
        """Stop listening and disconnect."""
        if self._writer is not None:
            self._writer.transport.abort()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()


async def serve_tcp(
    stack: contextlib.AsyncExitStack, host: str, port: int, received: Callable[[bytes], None]
) -> TcpServer:
    """Serve an address, port 0 for any that is free, until `stack` unwinds. Raises PortError."""
    server = TcpServer(received)
    stack.push_async_callback(server.close)
    await server.listen(host, port)
    return server


def is_loopback(host: str) -> bool:
    """Return whether an address is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
