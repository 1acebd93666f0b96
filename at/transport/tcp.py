"""A modem behind a TCP port: ser2net, the virtual modem, a terminal server."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from at.protocol.errors import LinkLost, PortNotFound
from at.transport.base import Receiver
from at.transport.connection import Connection

_CONNECT_S = 10.0
_CLOSE_S = 1.0


class TcpTransport:
    """The bytes of a TCP connection, without telnet negotiation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._connection: tuple[asyncio.Transport, Connection] | None = None

    async def open(self, receiver: Receiver) -> None:
        """Connect. Raises PortNotFound."""
        host, port = _address(self.name)
        try:
            async with asyncio.timeout(_CONNECT_S):
                transport, connection = await _connected(host, port, lambda: Connection(receiver))
        except OSError as error:  # a TimeoutError is one
            reason = error.strerror or str(error) or _silent(_CONNECT_S)
            raise PortNotFound(f"{self.name}: {reason}", hint="is the far end running?") from error
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = transport, connection

    def write(self, data: bytes) -> None:
        """Send bytes. Raises LinkLost once closed."""
        transport, _ = self._open()
        transport.write(data)

    async def drain(self) -> None:
        """Wait until the far end has room. Raises LinkLost."""
        _, connection = self._open()
        await connection.writable.wait()
        self._open()

    async def close(self) -> None:
        """Close; what the far end does not take within a second is dropped."""
        if self._connection is None:
            return
        (transport, connection), self._connection = self._connection, None
        transport.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await connection.closed.wait()
        finally:
            transport.abort()  # of a close that is cancelled as well: no later one has it

    def _open(self) -> tuple[asyncio.Transport, Connection]:
        if self._connection is None or self._connection[1].closed.is_set():
            raise LinkLost(f"{self.name} is closed")
        return self._connection


async def _connected(
    host: str, port: int, make: Callable[[], Connection]
) -> tuple[asyncio.Transport, Connection]:
    """Connect to the first address of a host that answers; each has its share of the time.

    Raises OSError, which says what each of them did, once. asyncio's own way to try several leaves
    a socket open where it is cancelled, up to Python 3.11 at least, and so the port of a modem
    taken.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
    reasons: dict[str, None] = {}
    share_s = _CONNECT_S / len(addresses)
    for address in addresses:
        try:
            async with asyncio.timeout(share_s):
                return await loop.create_connection(make, address, port)
        except TimeoutError:
            reasons[_silent(share_s)] = None
        except ConnectionRefusedError:
            reasons["nothing listens there"] = None
        except OSError as error:
            reasons[os.strerror(error.errno) if error.errno else str(error)] = None
    raise OSError(", ".join(reasons))


def _silent(seconds: float) -> str:
    return f"no connection in {seconds:g} s"


def _address(name: str) -> tuple[str, int]:
    try:
        parts = urlsplit(name)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise PortNotFound(
            f"{name!r} names no TCP port", hint="write it tcp://HOST:PORT, or tcp://[IPV6]:PORT"
        )
    return host, port
