"""Text that is safe to show on a terminal, and lines that are typed at one."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

# C0 but tab and newline, DEL, C1, and the characters that reorder or hide text around them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


def printable(text: str) -> str:
    r"""Return `text` with every control and direction character written as `\x1b`, `\u202e`."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def wrapped(text: str, width: int, first: str, indent: str) -> list[str]:
    """Return `text` behind `first` as lines of at most `width`; a path or a command stays whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def typed_lines() -> asyncio.StreamReader:
    """Return a reader of standard input: a terminal, a pipe or a file; on Windows, too.

    A thread reads it: the event loop would make a terminal non-blocking, its output included.
    """
    import asyncio  # `--help` of a command must not pay for it
    import threading

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
