"""Standard input as pieces and lines, read beside the event loop."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from agent.errors import UsageError

if TYPE_CHECKING:
    import asyncio

_LONGEST_LINE = 64 * 1024  # bytes: no command of a modem or a shell is near it
_PIECES_AHEAD = 16


class InputPieces:
    """Standard input, a terminal, a pipe or a file, in pieces of at most 4096 bytes.

    A thread reads it, also on Windows: the event loop would make a terminal non-blocking, its
    output included. It reads no more than a few pieces ahead, by `read_piece` where that is given.
    """

    def __init__(self, read_piece: Callable[[], bytes] | None = None) -> None:
        import asyncio  # `--help` of a command must not pay for it
        import threading

        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore(_PIECES_AHEAD)
        self._ended = False
        loop = asyncio.get_running_loop()

        def read() -> None:
            piece = b"."
            with contextlib.suppress(RuntimeError):  # the loop has ended before the input
                while piece:
                    self._room.acquire()
                    try:
                        piece = read_piece() if read_piece else os.read(sys.stdin.fileno(), 4096)
                    except OSError:  # the terminal has gone
                        piece = b""
                    loop.call_soon_threadsafe(self._pieces.put_nowait, piece)

        threading.Thread(target=read, daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = b"" if self._ended else await self._pieces.get()
        self._room.release()
        if not piece:
            self._ended = True
            raise StopAsyncIteration
        return piece


class InputLines:
    """The lines of standard input, each with its end; may be iterated on after a cancellation.

    Raises UsageError for a line that is too long.
    """

    def __init__(self, read_piece: Callable[[], bytes] | None = None) -> None:
        self._pieces = InputPieces(read_piece)
        self._rest = b""
        self._lines: deque[bytes] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            try:
                piece = await anext(self._pieces)
            except StopAsyncIteration:
                rest, self._rest = self._rest, b""
                if not rest:
                    raise
                return rest
            *lines, self._rest = (self._rest + piece).split(b"\n")
            if len(self._rest) > _LONGEST_LINE:
                raise UsageError(f"a line of the input is longer than {_LONGEST_LINE:,} bytes")
            self._lines.extend(line + b"\n" for line in lines)
        return self._lines.popleft()
