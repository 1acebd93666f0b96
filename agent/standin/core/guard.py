"""What stands before every route: which names the stand-in answers to, and from which pages.

A web page may make a browser call loopback under a name of its own (DNS rebinding) or change
something there (CSRF): the Host and the Origin give it away.
"""

from __future__ import annotations

import ipaddress
import re
import time
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from agent.standin.core.errors import Refused
    from agent.standin.state import Cloud


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


_HOST = re.compile(
    r"(?:\[(?P<address>[0-9A-Za-z:.%_-]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]{0,5})?", re.ASCII
)


class HostGuard:
    """An ASGI layer that lets pass what was meant for us: localhost, an IP address, an own name."""

    def __init__(
        self, app: ASGIApp, cloud: Cloud, refuse: Callable[[str, int, str], Refused]
    ) -> None:
        self._app = app
        self._cloud = cloud
        self._refuse = refuse
        self._known: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return
        objection = self._objection(scope)
        if objection is None:
            await self._app(scope, receive, send)
            return
        refused = self._refuse(scope["path"], *objection)
        # What follows on this connection is not trusted, either.
        refused.headers["Connection"] = "close"
        await refused.response()(scope, receive, send)

    def _objection(self, scope: Scope) -> tuple[int, str] | None:
        host = origin = ""
        length = encoding = False
        for name, value in scope["headers"]:
            if name == b"host":
                host = value.decode("latin-1")
            elif name == b"origin":
                origin = value.decode("latin-1")
            elif name == b"content-length":
                length = True
            elif name == b"transfer-encoding":
                encoding = True
        if length and encoding:
            # RFC 9112, 6.3: two readings of where the request ends; one of them hides another.
            return 400, "Content-Length and Transfer-Encoding exclude each other"
        if not self._own(host):
            return 421, "the Host header names another server"
        if origin and not self._own(urlsplit(origin).netloc):
            return 403, "the Origin is another site"
        return None

    def _own(self, netloc: str) -> bool:
        if netloc in self._known:
            return True
        name = _name(netloc)
        own = name == "localhost" or name in self._cloud.allowed_hosts or _is_address(name)
        if own and len(self._known) < 1000:
            self._known.add(netloc)
        return own


def _name(netloc: str) -> str:
    """Return the host of `host:port` in lower case, "" where it is not of that form.

    An IPv6 address loses its brackets, a name the dot that may end it.
    """
    found = _HOST.fullmatch(netloc)
    if found is None:
        return ""
    return (found["address"] or found["name"].removesuffix(".")).lower()


def _is_address(name: str) -> bool:
    # An address cannot be rebound: only names can.
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
