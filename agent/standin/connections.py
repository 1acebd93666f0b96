"""Connections: as many as there are descriptors for, and the one longest silent makes room.

Without this, clients that ask and never read would hold every descriptor, and nobody else would
be answered.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable

    from starlette.types import ASGIApp

ACCEPTED_AT_ONCE = 16
"""Connections that the event loop accepts before any of them is seen here."""
_HANDSHAKE_S = 10.0
_RESERVE = 4 * ACCEPTED_AT_ONCE + 32
"""Descriptors for those, for the state file, the worker's pipes and what Python itself opens."""


class ServedConfig(uvicorn.Config):
    """uvicorn's settings, and with which TLS a new connection is met, if any."""

    def __init__(
        self, app: ASGIApp, tls: Callable[[], ssl.SSLContext | None], **settings: Any
    ) -> None:
        super().__init__(app, http=Connection, **settings)
        self.tls = tls


class Connection(H11Protocol):
    """A connection that knows when it last heard something, and may turn out to be TLS."""

    heard_at = 0.0
    everyone: ClassVar[set[Connection]] = set()
    """Of all servers of this process: they share its descriptors."""
    _early: bytes | None = None
    """What came over TLS before we were told that it stands; None where nothing is waited for."""
    _handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection; where there are too many, the longest silent one is dropped."""
        self.transport = transport
        self.heard_at = time.monotonic()
        self.everyone.add(self)
        if len(self.everyone) > most_connections():
            silent = min(self.everyone, key=lambda other: other.heard_at)
            # It leaves the set at once: its end is seen a turn of the loop later.
            self.everyone.discard(silent)
            silent.transport.abort()
        context = cast("ServedConfig", self.config).tls()
        if context is None:
            super().connection_made(transport)
        else:
            self._early = b""
            self._handshake = self.loop.create_task(self._begin_tls(transport, context))

    async def _begin_tls(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        try:
            over = await self.loop.start_tls(
                transport, self, context, server_side=True, ssl_handshake_timeout=_HANDSHAKE_S
            )
        except OSError:  # the client looked at the certificate, or spoke no TLS
            self.everyone.discard(self)
            transport.abort()
            return
        early, self._early = self._early, None
        super().connection_made(cast("asyncio.Transport", over))
        if early:
            self.data_received(early)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that has ended."""
        self.everyone.discard(self)
        if self._early is None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        self.heard_at = time.monotonic()
        if self._early is None:
            super().data_received(data)
        else:
            self._early += data


def most_connections() -> int:
    """Return how many connections leave descriptors for the rest."""
    try:
        import resource
    except ImportError:  # Windows counts no descriptors
        return 4096
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 4096
    return min(4096, max(8, soft - _RESERVE))
