"""Connections to the stand-in: how many there may be at once, their TLS, the end of their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any, ClassVar, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent.standin.clock import Clock


def server_context(pem: bytes) -> ssl.SSLContext:
    """Return the TLS settings of a server; `pem` is its private key and its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The library reads a key from a file only; the file is deleted at once.
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)
    finally:
        Path(path).unlink()
    return context


ACCEPTED_AT_ONCE = 16
"""Connections that the event loop accepts before any of them is seen here."""
_HANDSHAKE_S = 10.0
_LOOK_S = 0.005
_RESERVE = 4 * ACCEPTED_AT_ONCE + 32
"""Descriptors for those, for the state file, the worker's pipes and what Python itself opens."""


class ServerConfig(uvicorn.Config):
    """The settings of uvicorn; `tls` returns the TLS settings of a new connection, if any.

    The answers say the time of `clock`, by which tokens and Retry-After are.
    """

    def __init__(
        self, app: ASGIApp, tls: Callable[[], ssl.SSLContext | None], clock: Clock, **settings: Any
    ) -> None:
        super().__init__(app, http=Connection, date_header=False, **settings)
        self.tls = tls
        self.clock = clock


class Server(uvicorn.Server):
    """A server that leaves the signals to the program around it, and ends once its answers have.

    By itself uvicorn looks every 0.1 s whether it is to end, and then whether all has ended.
    """

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)

    def end(self) -> None:
        """Take no more connections, and have `serve` return after the answers in progress."""
        self.should_exit = True
        self._ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Catch none."""
        yield

    async def main_loop(self) -> None:
        """Serve until the end is called for."""
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        """Listen no more, and wait for the answers in progress; `force_exit` ends the wait."""
        for listening in self.servers:
            listening.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        # uvicorn tells of the end of neither.
        while (state.connections or state.tasks) and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Return whether something failed: uvicorn logs a cancelled answer with a traceback, too."""
    return not (record.exc_info and record.exc_info[0] is asyncio.CancelledError)


class Connection(H11Protocol):
    """A connection that records its last activity, and may speak TLS."""

    config: ServerConfig
    last_activity_s = 0.0
    """Of the monotonic clock."""
    all_open: ClassVar[set[Connection]] = set()
    """The open connections of all servers of this process, which share its descriptors."""
    _early: bytes | None = None
    """Bytes that came before the TLS handshake was reported as done; None outside of one."""
    _handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; where there are too many, drop the one that is silent longest."""
        self.transport = transport
        self.last_activity_s = time.monotonic()
        self.all_open.add(self)
        if len(self.all_open) > most_connections():
            silent = min(self.all_open, key=lambda other: other.last_activity_s)
            # Removed at once: connection_lost is called a turn of the loop later.
            self.all_open.discard(silent)
            silent.transport.abort()
        context = self.config.tls()
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
        except OSError:  # the client rejects the certificate, or speaks no TLS
            self.all_open.discard(self)
            transport.abort()
            return
        early, self._early = self._early, None
        super().connection_made(cast("asyncio.Transport", over))
        if early:
            self.data_received(early)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove a connection that has ended."""
        self.all_open.discard(self)
        if self._early is None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Record the activity, and handle what the client sent."""
        self.last_activity_s = time.monotonic()
        if self._early is None:
            date = formatdate(self.config.clock.time(), usegmt=True).encode()
            self.server_state.default_headers = [(b"date", date)]
            super().data_received(data)
        else:
            self._early += data


def most_connections() -> int:
    """Return how many connections there may be, so that descriptors are left for the rest."""
    if sys.platform == "win32":  # it counts no descriptors
        return 4096
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 4096
    return min(4096, max(8, soft - _RESERVE))


async def cancel_and_wait(*tasks: asyncio.Task[None], within_s: float) -> None:
    """Cancel tasks and wait until they have ended, so long at most; what they raise is dropped."""
    for task in tasks:
        task.cancel()
    ended, _ = await asyncio.wait(tasks, timeout=within_s) if tasks else (tasks, ())
    for task in ended:
        if not task.cancelled():
            task.exception()  # retrieved, or the loop would report it
