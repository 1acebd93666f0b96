"""What a person, a pipe or a file types, line by line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading


def typed_lines() -> asyncio.StreamReader:
    """Return standard input, whatever it is: a terminal, a pipe, a file; on Windows, too.

    A thread reads it: a loop would make a terminal non-blocking, and its output with it.
    """
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()

    def read() -> None:
        # The loop has ended before the input, or the terminal has gone.
        with contextlib.suppress(RuntimeError, OSError):
            while data := os.read(sys.stdin.fileno(), 4096):
                loop.call_soon_threadsafe(reader.feed_data, data)
            loop.call_soon_threadsafe(reader.feed_eof)

    threading.Thread(target=read, daemon=True).start()
    return reader
