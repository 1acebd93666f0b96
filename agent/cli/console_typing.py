"""Lines for the kit: those of `--send` first, then what a person types."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from typing import TYPE_CHECKING

from agent.cli.typed_lines import typed_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable


class Typing:
    """Types each line once, over however many connections."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._first = deque(lines)
        self._keyboard: asyncio.StreamReader | None = None

    @contextlib.asynccontextmanager
    async def into(self, send: Callable[[str], None]) -> AsyncIterator[None]:
        """Hand lines, without their ends, to `send` while the block runs."""
        typing = asyncio.create_task(self._type(send))
        try:
            yield
        finally:
            typing.cancel()
            await asyncio.gather(typing, return_exceptions=True)

    async def _type(self, send: Callable[[str], None]) -> None:
        while self._first:
            send(self._first[0])
            self._first.popleft()
        if self._keyboard is None:
            if not sys.stdin.isatty():
                return
            self._keyboard = typed_lines()
        async for line in self._keyboard:
            send(line.decode("utf-8", "replace").rstrip("\r\n"))
