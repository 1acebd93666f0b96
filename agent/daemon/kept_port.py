"""A port that the agent keeps open, and closes for as long as something else has to open it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from at.usb import same_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from agent.daemon.board import Concern

DUMP_S = 60.0
"""How long the rest of a core dump is waited for: 256 kB of memory, in hex, at 115200 baud."""


class KeptPort:
    """One port of a kit; `concern` is what it is kept for. At most one at a time has it closed."""

    def __init__(self, concern: Concern, name: str | None = None) -> None:
        self.name = name
        """"" where there is none; None while it is not known which it is: it may be any."""
        self.let_go_for = ""
        """What has it closed."""
        self._concern = concern
        self._wanted = asyncio.Event()
        self._free = asyncio.Event()
        self._free.set()
        self._closed = asyncio.Event()
        self._closed.set()
        self._no_dump = asyncio.Event()
        self._no_dump.set()
        self._times = 0
        self._seconds = 0.0

    def may_be(self, port: str) -> bool:
        """Tell whether this can be the port of another name; "" is none."""
        return bool(port) and (self.name is None or bool(self.name and same_port(self.name, port)))

    def dump_comes(self, dump_bytes: int) -> None:
        """Hear how much there is of a core dump that is being printed; 0 where none is."""
        if dump_bytes:
            self._no_dump.clear()
        else:
            self._no_dump.set()

    @property
    def is_wanted(self) -> bool:
        """Tell whether it is to be closed."""
        return self._wanted.is_set()

    async def wanted(self) -> None:
        """Wait until it is to be closed: after a core dump that is being printed just then."""
        await self._wanted.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DUMP_S):
                await self._no_dump.wait()

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Wait until it may be opened; it counts as open while the block runs."""
        while not self._free.is_set():
            self._concern.waits(f"its port is let go for {self.let_go_for}")
            await self._free.wait()
        self._closed.clear()
        try:
            yield
        finally:
            self._no_dump.set()
            self._closed.set()

    @contextlib.asynccontextmanager
    async def let_go(self, whom: str) -> AsyncIterator[None]:
        """Keep it closed while the block runs; `status` tells for whom, how often, how long."""
        self.let_go_for = whom
        self._free.clear()
        self._wanted.set()
        try:
            await self._closed.wait()
            with self._counted(whom):
                yield
        finally:
            self.let_go_for = ""
            self._wanted.clear()
            self._free.set()

    @contextlib.contextmanager
    def _counted(self, whom: str) -> Iterator[None]:
        begun = time.monotonic()
        self._concern.learn(let_go_for=whom)
        try:
            yield
        finally:
            self._times += 1
            self._seconds += time.monotonic() - begun
            self._concern.learn(
                let_go_for=None, let_go=self._times, let_go_s=round(self._seconds, 1)
            )
