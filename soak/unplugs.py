"""A thousand unplugs of a PTY, each after a random byte: every waiter learns it within 100 ms."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from at.driver.modem import Modem
from at.protocol.errors import AtError
from at.transport.event_loop import SerialTransport
from at.transport.threaded import ThreadedSerialTransport
from tests.support.modem.pty_far_end import PtyFarEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "unplugs"
ANSWER = b'+X: "0123456789"\r\nOK\r\n'


def run(smoke: bool) -> Iterator[Row]:
    for kind, count in (
        (SerialTransport, 20 if smoke else 1000),
        (ThreadedSerialTransport, 5 if smoke else 100),
    ):
        slowest, reopened, leaked = asyncio.run(session(kind, count))
        yield Row(f"slowest to learn of {count} unplugs, {kind.__name__}", slowest, "ms", 100)
        yield Row("slowest to open again", reopened, "ms", 1000)
        yield Row("file descriptors and threads left", leaked, "", 0,
                  fault="unplugged in the middle of a command", injected=count)  # fmt: skip


def _cut(cut: int, _line: bytes) -> bytes:
    return ANSWER[:cut]


async def session(
    kind: type[SerialTransport | ThreadedSerialTransport], count: int
) -> tuple[float, float, int]:
    chance = random.Random(1)
    slowest = reopened = 0.0
    before = 0
    for number in range(count + 1):
        if number == 1:
            gc.collect()
            before = in_use()
        with PtyFarEnd() as far:
            modem = Modem(kind(far.path))
            started = time.perf_counter()
            await modem.open()
            reopened = max(reopened, time.perf_counter() - started)
            # Without its last byte it is whole as well: a CR ends a line if no LF comes in time.
            cut = chance.randrange(len(ANSWER) - 1)
            far._answer = partial(_cut, cut)
            waiting = [asyncio.create_task(modem.execute("AT+X", timeout_s=60)) for _ in range(3)]
            async with asyncio.timeout(10):
                await far.until(b"AT+X")
            started = time.perf_counter()
            far.unplug()
            results = await asyncio.gather(*waiting, return_exceptions=True)
            slowest = max(slowest, time.perf_counter() - started)
            assert all(isinstance(result, AtError) for result in results), results
            await modem.close()
    gc.collect()
    return slowest * 1000, reopened * 1000, in_use() - before


def in_use() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) + sum(
        not thread.name.startswith("asyncio_")  # the loop's own pool comes and goes
        for thread in threading.enumerate()
    )
