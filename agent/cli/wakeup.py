"""Ctrl-C that comes in the moment before the event loop goes to sleep wakes it all the same.

`asyncio.run` handles SIGINT in Python, between two of its steps: one that arrives after the last
step and before the sleep would wait for the next event, which may never come.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def signals_wake_the_loop() -> Iterator[None]:
    """Have every signal wake the running loop, while the block runs."""
    if sys.platform == "win32":  # its loop looks after Ctrl-C itself
        yield
        return
    reads, writes = os.pipe()
    for end in (reads, writes):
        os.set_blocking(end, False)
    loop = asyncio.get_running_loop()

    def drain() -> None:
        with suppress(BlockingIOError):
            os.read(reads, 4096)

    loop.add_reader(reads, drain)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        loop.remove_reader(reads)
        os.close(reads)
        os.close(writes)
