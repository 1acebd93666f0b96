"""Those who watch a kit's console: each has what it did not read yet, and a bound on that."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from agent.console import wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent.console.reader import ConsoleCounts, ConsoleItem

MOST_WAITING = 1024 * 1024
"""Bytes that wait for one watcher: ten thousand lines. A single larger dump waits all the same."""
_AT_ONCE = 65536  # bytes that are handed over at once


class Watcher:
    """One window. It may stop reading: the oldest makes room for the newest, and is counted."""

    def __init__(self, counts: ConsoleCounts) -> None:
        """Tell what is heard from now on by `counts`, which goes on counting."""
        self._counts = counts
        self._before = replace(counts)
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._some = asyncio.Event()

    def put(self, lines: Sequence[bytes]) -> None:
        """Take lines of `agent.console.wire`; returns at once, whoever reads them or not."""
        for line in lines:
            self._waiting.append(line)
            self._size += len(line)
            while self._size > MOST_WAITING and len(self._waiting) > 1:
                self._size -= len(self._waiting.popleft())
                self._lost += 1
        self._some.set()

    async def next(self) -> tuple[bytes, int]:
        """Wait for lines; return some of them, and how many were lost before them."""
        await self._some.wait()
        data = bytearray()
        while self._waiting and len(data) < _AT_ONCE:
            data += self._waiting.popleft()
        self._size -= len(data)
        lost, self._lost = self._lost, 0
        if not self._waiting:
            self._some.clear()
        return bytes(data), lost

    def counted(self) -> dict[str, int]:
        """Return what was heard since this window was opened, by name."""
        before = asdict(self._before)
        return {name: value - before[name] for name, value in asdict(self._counts).items()}


class Watchers:
    """All windows on one console."""

    def __init__(self, counts: ConsoleCounts) -> None:
        self._counts = counts
        self._watchers: list[Watcher] = []
        self._dump_comes = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Be shown what is heard while the block runs."""
        watcher = Watcher(self._counts)
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)

    def show(self, items: Sequence[ConsoleItem]) -> None:
        """Show what was heard to all; waits for nobody."""
        if self._watchers and items:
            self._put([wire.encode(item) for item in items])

    def show_coming(self, dump_bytes: int) -> None:
        """Show that a core dump began, of which so much was heard, or that none is printed."""
        if bool(dump_bytes) != self._dump_comes:
            self._dump_comes = bool(dump_bytes)
            self._put([b'{"coming":%d}\n' % dump_bytes])

    def _put(self, lines: Sequence[bytes]) -> None:
        for watcher in self._watchers:
            watcher.put(lines)
