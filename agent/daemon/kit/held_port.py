"""One port that the agent holds for a concern, except while it is released to a program."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from agent.tasks import wait_for_event
from at.ports.usb import same_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from agent.daemon.snapshot import PortStatus
    from agent.daemon.status import Concern

DUMP_S = 60.0
"""Seconds to wait for the rest of a core dump: 256 kB of memory, in hex, at 115200 baud."""


class HeldPort:
    """One port that the agent holds for a concern, except while it is released to a program."""

    def __init__(self, concern: Concern[PortStatus], name: str | None = None) -> None:
        self.name = name
        """None while it is not known, so that it may be any port; "" if there is no such port."""
        self.released_to = ""
        """The program, or the work of the agent, that it is released to; "" while it is not."""
        self._concern = concern
        self._release_requested = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._closed = asyncio.Event()
        self._closed.set()
        self._no_dump = asyncio.Event()
        self._no_dump.set()
        self._released_s = 0.0

    def may_be(self, port: str) -> bool:
        """Return whether `port` may name this port; never for ""."""
        return bool(port) and (self.name is None or bool(self.name and same_port(self.name, port)))

    def set_dump_bytes(self, dump_bytes: int) -> None:
        """Record how much of a core dump that is being printed was received; 0 for no dump."""
        if dump_bytes:
            self._no_dump.clear()
        else:
            self._no_dump.set()

    @property
    def must_close(self) -> bool:
        """Whether a release is requested, so that the port has to be closed."""
        return self._release_requested.is_set()

    async def release_requested(self) -> None:
        """Wait until the port has to be closed; a core dump may end first, for at most DUMP_S."""
        await self._release_requested.wait()
        await wait_for_event(self._no_dump, DUMP_S)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Wait until the port may be opened; it counts as open while the block runs."""
        while not self._free.is_set():
            self._concern.set_waiting(f"its port is let go for {self.released_to}")
            await self._free.wait()
        self._closed.clear()
        try:
            yield
        finally:
            self._no_dump.set()
            self._closed.set()

    @contextlib.asynccontextmanager
    async def released(self, to: str) -> AsyncIterator[None]:
        """Keep the port closed while the block runs. The caller must have exclusive use."""
        self.released_to = to
        self._free.clear()
        self._release_requested.set()
        try:
            await self._closed.wait()
            with self._counted(to):
                yield
        finally:
            self.released_to = ""
            self._release_requested.clear()
            self._free.set()

    @contextlib.contextmanager
    def _counted(self, to: str) -> Iterator[None]:
        """Show in `status` to whom the port is released, how often and for how many seconds."""
        began = time.monotonic()
        with self._concern.changing() as status:
            status.let_go_for = to
        try:
            yield
        finally:
            self._released_s += time.monotonic() - began
            with self._concern.changing() as status:
                status.let_go_for = None
                status.let_go += 1
                status.let_go_s = round(self._released_s, 1)
