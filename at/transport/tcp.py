"""A modem behind a TCP port: ser2net, the virtual modem, a terminal server."""

import asyncio
import errno
import os
import re
import socket
from urllib.parse import urlsplit

from at.protocol.errors import LinkLost, PortNotFound
from at.transport.base import Receiver
from at.transport.connection import Connection

_CONNECT_S = 10.0
_NEXT_ADDRESS_S = 0.25
"""After which the next address of the name is tried as well: one may be dead and silent."""
_CLOSE_S = 1.0


class TcpTransport:
    """The bytes of a TCP connection, without telnet negotiation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._connection: tuple[asyncio.Transport, Connection] | None = None

    async def open(self, receiver: Receiver) -> None:
        """Connect. Raises PortNotFound."""
        host, port = _address(self.name)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_S):
                transport, connection = await loop.create_connection(
                    lambda: Connection(receiver), host, port, happy_eyeballs_delay=_NEXT_ADDRESS_S
                )
        except TimeoutError as error:
            raise PortNotFound(f"{self.name}: no connection in {_CONNECT_S:g} s") from error
        except OSError as error:
            raise PortNotFound(
                f"{self.name}: {_why(error)}", hint="is the far end running?"
            ) from error
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
            async with asyncio.timeout(_CLOSE_S):
                await connection.closed.wait()
        except TimeoutError:
            transport.abort()

    def _open(self) -> tuple[asyncio.Transport, Connection]:
        if self._connection is None or self._connection[1].closed.is_set():
            raise LinkLost(f"{self.name} is closed")
        return self._connection


def _why(error: OSError) -> str:
    """Return what the addresses of a name say, each thing once: asyncio has them in its text."""
    codes = dict.fromkeys(map(int, re.findall(r"\[Errno (\d+)\]", str(error))))
    if list(codes) == [errno.ECONNREFUSED]:
        return "nothing listens there"
    return ", ".join(map(os.strerror, codes)) or error.strerror or str(error)


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
