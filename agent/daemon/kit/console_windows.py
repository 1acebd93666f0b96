"""The windows that watch one console: each gets its lines, and none holds another up."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from agent.console import line_classifier
from agent.console.line_classifier import ConsoleCounts, ConsoleItem
from agent.daemon.recent import CONSOLE, RecentMoments

MOST_WAITING = 1024 * 1024
"""Bytes that wait for one watcher: ten thousand lines. A single larger dump waits all the same."""
_BATCH = 65536  # bytes that a watcher gets at once


class ConsoleWatcher:
    """One window. While it does not read the oldest lines are dropped, and counted."""

    def __init__(self, counts: ConsoleCounts) -> None:
        """Begin to count; `counts` are those of the console."""
        self._now = self._before = replace(counts)
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._readable = asyncio.Event()

    def put(self, lines: Sequence[bytes], counts: ConsoleCounts) -> None:
        """Add lines of `agent.console.line_classifier`, counted in `counts`; never blocks."""
        self._now = counts
        for line in lines:
            self._waiting.append(line)
            self._size += len(line)
            while self._size > MOST_WAITING and len(self._waiting) > 1:
                self._size -= len(self._waiting.popleft())
                self._lost += 1
        self._readable.set()

    async def next(self) -> tuple[bytes, int]:
        """Wait for lines; return some of them, and how many were lost before them."""
        await self._readable.wait()
        data = bytearray()
        while self._waiting and len(data) < _BATCH:
            data += self._waiting.popleft()
        self._size -= len(data)
        lost, self._lost = self._lost, 0
        if not self._waiting:
            self._readable.clear()
        return bytes(data), lost

    def counts(self) -> ConsoleCounts:
        """Return how much was shown since this window was opened, or lost."""
        before = asdict(self._before)
        now = asdict(self._now).items()
        return ConsoleCounts(**{name: value - before[name] for name, value in now})


class ConsoleWatchers:
    """All windows on one console."""

    def __init__(self, counts: ConsoleCounts) -> None:
        self._counts = counts
        self._published = replace(counts)
        self._watchers: list[ConsoleWatcher] = []
        self._dump_in_progress = False
        self.recent: RecentMoments | None = None
        """Keeps the newest lines also while nobody watches."""

    @contextlib.contextmanager
    def subscribed(self) -> Iterator[ConsoleWatcher]:
        """Add a watcher for as long as the block runs."""
        watcher = ConsoleWatcher(self._published)
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)

    def publish(self, items: Sequence[ConsoleItem]) -> None:
        """Pass items to all watchers; never blocks. They count what was read up to here."""
        self._published = replace(self._counts)
        if self.recent is not None:
            self.recent.add_console(items)
        if self._watchers and items:
            self._put([line_classifier.encode_item(item) for item in items])

    def publish_dump_bytes(self, dump_bytes: int) -> None:
        """Pass on that a core dump began, of which so much was received, or that it is over (0)."""
        if bool(dump_bytes) != self._dump_in_progress:
            self._dump_in_progress = bool(dump_bytes)
            if dump_bytes and self.recent is not None:
                self.recent.add(CONSOLE, "a core dump is coming; its lines are kept apart", "note")
            self._put([b'{"coming":%d}\n' % dump_bytes])

    def _put(self, lines: Sequence[bytes]) -> None:
        for watcher in self._watchers:
            watcher.put(lines, self._published)
