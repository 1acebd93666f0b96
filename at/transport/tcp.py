"""A modem behind a TCP port: ser2net, the virtual modem, a terminal server."""

import asyncio
import socket
from urllib.parse import urlsplit

from at.protocol.errors import LinkLost, PortNotFound
from at.transport.base import Receiver

_CONNECT_S = 10.0
_CLOSE_S = 1.0


class TcpTransport:
    """The bytes of a TCP connection, without telnet negotiation."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._protocol: _Protocol | None = None

    @property
    def name(self) -> str:
        """The port as it was named: "tcp://127.0.0.1:4000"."""
        return self._name

    async def open(self, receiver: Receiver) -> None:
        """Connect. Raises PortNotFound."""
        host, port = _address(self._name)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_S):
                transport, protocol = await loop.create_connection(
                    lambda: _Protocol(receiver), host, port
                )
        except TimeoutError as error:
            raise PortNotFound(f"{self._name}: no connection in {_CONNECT_S:g} s") from error
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            reason = "nothing listens there" if refused else error.strerror or str(error)
            raise PortNotFound(f"{self._name}: {reason}", hint="is the far end running?") from error
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol = protocol

    def write(self, data: bytes) -> None:
        """Send bytes. Raises LinkLost once closed."""
        self._open().write(data)

    async def drain(self) -> None:
        """Wait until the far end has room. Raises LinkLost."""
        self._open()
        assert self._protocol is not None
        await self._protocol.writable.wait()
        self._open()

    async def close(self) -> None:
        """Close; what the far end does not take within a second is dropped."""
        protocol, self._protocol = self._protocol, None
        if protocol is None or protocol.transport is None:
            return
        protocol.transport.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await protocol.closed.wait()
        except TimeoutError:
            protocol.transport.abort()

    def _open(self) -> asyncio.Transport:
        protocol = self._protocol
        if protocol is None or protocol.transport is None or protocol.closed.is_set():
            raise LinkLost(f"{self._name} is closed")
        return protocol.transport


class _Protocol(asyncio.Protocol):
    def __init__(self, receiver: Receiver) -> None:
        self.transport: asyncio.Transport | None = None
        self.closed = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.data_received = receiver.data_received  # type: ignore[method-assign]
        self._receiver = receiver

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def eof_received(self) -> None:
        self._receiver.connection_lost(OSError("the far end hung up"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self.writable.set()
        self._receiver.connection_lost(exc)


def _address(name: str) -> tuple[str, int]:
    try:
        parts = urlsplit(name)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise PortNotFound(f"{name!r} names no TCP port", hint="write it tcp://HOST:PORT")
    return host, port
