"""Text on its way to a terminal, or a program, that may take it slowly or not at all."""

import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable

from agent.cli.framework.safe_text import AS_IN_JSON, drawn

OUTPUT_LIMIT = 32 * 1024 * 1024
"""Bytes that wait to be shown; what comes beyond them is counted, and not shown."""
_AT_ONCE = 16384  # bytes of short lines that are written together
OUTPUT_END_S = 5.0
"""Seconds that the end of the command waits for a terminal that takes nothing."""


class PacedOutput:
    """Writes texts to standard output and standard error, in order, in a thread of its own."""

    def __init__(self, not_shown: Callable[[int], str], limit: int = OUTPUT_LIMIT) -> None:
        """`not_shown` makes the text that stands for a number of lines that were left out."""
        self._not_shown = not_shown
        self._limit = limit
        self._texts: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._left_out = 0
        self._ended = False
        self._failure: OSError | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    def put(self, text: str, *, error: bool = False) -> None:
        """Write `text` when its turn comes, to standard error with `error`.

        Raises BrokenPipeError, OSError once nobody can read any more.
        """
        shown = drawn(text) if os.isatty(2 if error else 1) else text
        data = shown.encode("utf-8", AS_IN_JSON)
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._bytes + len(data) > self._limit:
                self._left_out += text.count("\n")
                return
            self._append(2 if error else 1, data)

    def close(self) -> None:
        """Write what waits, but do not wait for a terminal that takes nothing. Raises OSError."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(OUTPUT_END_S if sys.stdout.isatty() else None)
        if self._failure is not None:
            raise self._failure

    def _append(self, descriptor: int, data: bytes) -> None:
        self._texts.append((descriptor, data))
        self._bytes += len(data)
        self._changed.notify()

    def _write_all(self) -> None:
        try:
            while (piece := self._next()) is not None:
                _write(*piece)
        except OSError as error:
            with self._changed:
                self._failure = error

    def _next(self) -> tuple[int, bytes] | None:
        with self._changed:
            if self._left_out and self._bytes < self._limit // 2:
                text, self._left_out = self._not_shown(self._left_out), 0
                self._append(1, text.encode() + b"\n")
            while not self._texts:
                if self._ended:
                    return None
                self._changed.wait()
            descriptor, data = self._texts.popleft()
            while self._texts and self._texts[0][0] == descriptor and len(data) < _AT_ONCE:
                data += self._texts.popleft()[1]
            self._bytes -= len(data)
            return descriptor, data


def _write(descriptor: int, data: bytes) -> None:
    # Not sys.stdout: a thread that is stuck would hold its lock at the end of the process.
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # another process made the terminal non-blocking
            select.select([], [descriptor], [])
