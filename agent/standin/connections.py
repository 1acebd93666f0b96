"""Connections: as many as there are descriptors for, and the one longest silent makes room.

Without this, clients that ask and never read would hold every descriptor, and nobody else would
be answered.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

ACCEPTED_AT_ONCE = 16
"""Connections that the event loop accepts before any of them is seen here."""
_RESERVE = 4 * ACCEPTED_AT_ONCE + 32
"""Descriptors for those, for the state file, the worker's pipes and what Python itself opens."""


class Connection(H11Protocol):
    """A connection that knows when it last heard something."""

    heard_at = 0.0
    everyone: ClassVar[set[Connection]] = set()
    """Of all servers of this process: they share its descriptors."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection; where there are too many, the longest silent one is dropped."""
        super().connection_made(transport)
        self.heard_at = time.monotonic()
        self.everyone.add(self)
        if len(self.everyone) > most_connections():
            silent = min(self.everyone, key=lambda other: other.heard_at)
            # It leaves the set at once: its end is seen a turn of the loop later.
            self.everyone.discard(silent)
            silent.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that has ended."""
        self.everyone.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        self.heard_at = time.monotonic()
        super().data_received(data)


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
