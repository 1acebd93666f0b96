"""Durable enqueue, interleaved with synced appends to a plain file on the same disk."""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from agent.config.profile import OutboxSettings
from agent.outbox import ItemKind, NewItem, Outbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "outbox"
SINGLY, WAITING, BATCHED = 1 / 1.1, 5.0, 15.0
"""Times the rate of synced appends that each must reach."""
BODY = os.urandom(400)
_numbers = itertools.count()


def item() -> NewItem:
    """Return a chunk of 400 bytes that no other resembles."""
    return NewItem(ItemKind.CHUNK, "kit", b"\x08" + next(_numbers).to_bytes(8, "little") + BODY)


def appended(descriptor: int, count: int) -> float:
    """Return the seconds of one synced append."""
    started = time.perf_counter()
    for _ in range(count):
        os.write(descriptor, BODY)
        os.fdatasync(descriptor) if hasattr(os, "fdatasync") else os.fsync(descriptor)
    return (time.perf_counter() - started) / count


def singly(box: Outbox, count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        box.put([item()])
    return (time.perf_counter() - started) / count


def waiting(box: Outbox, count: int) -> float:
    async def one() -> None:
        for _ in range(count // 16):
            await box.aput([item()])

    async def all_of_them() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(16)))
        return (time.perf_counter() - started) / (count // 16 * 16)

    return asyncio.run(all_of_them())


def batched(box: Outbox, count: int) -> float:
    batches = [[item() for _ in range(100)] for _ in range(count // 100)]
    started = time.perf_counter()
    for batch in batches:
        box.put(batch)
    return (time.perf_counter() - started) / (100 * len(batches))


def run(smoke: bool) -> Iterator[Row]:
    rounds, scale = (2, 1) if smoke else (9, 4)
    cases: list[tuple[str, Callable[[Outbox, int], float], int, float]] = [
        ("one item at a time", singly, 100 * scale, SINGLY),
        ("an item with 16 waiting", waiting, 800 * scale, WAITING),
        ("an item in batches of 100", batched, 2000 * scale, BATCHED),
    ]
    # On a disk: /tmp may be in memory, where a sync costs nothing.
    on_disk = Path("/var/tmp")
    with tempfile.TemporaryDirectory(dir=on_disk if on_disk.is_dir() else None) as folder:
        path = Path(folder) / "floor"
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        limits = OutboxSettings(max_bytes=1 << 40, max_items=1 << 40)
        with Outbox(Path(folder) / "box", limits) as box:
            for what, measured, count, goal in cases:
                ratios, floors, ours = [], [], []
                for _ in range(rounds):
                    before = appended(descriptor, 100 * scale)
                    took = measured(box, count)
                    floor = (before + appended(descriptor, 100 * scale)) / 2
                    floors.append(floor * 1e6)
                    ours.append(took * 1e6)
                    ratios.append(took / floor)
                # The ratio is judged, as a disk's own speed drifts; it is shown as a time.
                floor_us = statistics.median(floors)
                yield Row(
                    what,
                    statistics.median(ratios) * floor_us,
                    "us",
                    floor_us / goal,
                    f"a synced append: {floor_us:.0f} us, median {statistics.median(ours):.0f} us",
                )
        os.close(descriptor)
