"""The outbox: kills, power cuts, damage, full disks, a failing server: nothing taken is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from agent.errors import RateLimited, ServerTrouble, Unreachable
from agent.outbox import ItemKind, Outbox
from agent.outbox.delivery_loop import Delivery
from agent.outbox.items import Selection
from tests.support.outbox import full_disk
from tests.support.outbox.outbox_damage import KINDS, make, tried
from tests.support.outbox.outboxes import LIMITS, Clock, chunk
from tests.support.outbox.power_cut import lost_in_power_cuts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent.outbox.items import Item

NAME = "outbox"
SEED = 20260207

# It puts chunks as fast as the line brings them and says the number of each that is on disk.
WRITER = """
import sys
from pathlib import Path
from tests.support.outbox.outboxes import LIMITS, chunk
from agent.outbox import Outbox
box = Outbox(Path(sys.argv[1]), LIMITS)
sys.stdout.write("ready\\n")
sys.stdout.flush()
for number in range(int(sys.argv[2]), 1 << 40):
    box.put([chunk(number)])
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def kills(folder: Path, count: int, dice: random.Random) -> tuple[int, int, bool]:
    """Kill the writer `count` times; return what was lost, most duplicates, whether in order."""
    acknowledged: set[int] = set()
    start = 0
    for _ in range(count):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(start)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        # After a number of acknowledgements, and then at any instant of the next write.
        for _ in range(dice.randrange(1, 60)):
            acknowledged.add(int(child.stdout.readline()))
        for _ in range(dice.randrange(2000)):
            pass
        os.kill(child.pid, signal.SIGKILL)
        acknowledged |= {int(line) for line in child.stdout.read().split(b"\n")[:-1] if line}
        child.stdout.close()
        child.wait()
        # What came after the last acknowledgement is printed by the kit again.
        start = max(acknowledged) + 1
    with Outbox(folder, LIMITS) as box:
        items = box.transact(
            lambda store: store.take("kit", ItemKind.CHUNK, Selection(1 << 40, 1 << 60))
        )
    numbers = [int.from_bytes(item.body[2:10], "little") for item in items]
    duplicates = len(numbers) - len(set(numbers))
    return len(acknowledged - set(numbers)), duplicates, numbers == sorted(numbers)


def damages(folder: Path, count: int, dice: random.Random) -> dict[str, int]:
    """Damage outboxes `count` times, by each kind; return what must be 0."""
    found = dict.fromkeys(("failed starts", "whole items lost", "silent", "wrong bytes"), 0)
    sounds = [make(folder / str(number), dice) for number in range(10)]
    for number in range(count):
        kind, seed = KINDS[number % len(KINDS)], dice.randrange(1 << 30)
        try:
            verdict = tried(dice.choice(sounds), kind, seed, folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a failed start
            print(f"damage {number} of seed {SEED}, {kind} {seed}: {error!r}", file=sys.stderr)
            found["failed starts"] += 1
            continue
        found["whole items lost"] += verdict.whole_lost
        found["silent"] += verdict.silent
        found["wrong bytes"] += verdict.wrong
    return found


def full_disks(folder: Path, count: int) -> Iterator[Row]:
    """Fill the disk of an outbox `count` times; yield what must be 0."""
    mounted = full_disk.can_mount()
    control = f"{'small file systems' if mounted else 'counted'}, seeds from {SEED}"
    found: Counter[str] = Counter()
    for seed in range(SEED, SEED + count):
        tried = full_disk.tried(folder / f"disk{seed}", seed, mounted=mounted)
        counts = {what: abs(each) for what, each in tried.items() if isinstance(each, int)}
        counts["not told"] = int("disk is full" not in str(tried["said"]))
        found.update(counts)
    for what, number in found.items():
        first = what == next(iter(found))
        yield Row(f"of {count} full disks: {what}", number, "", 0, control,
                  fault="a full disk, a quota", injected=count * first)  # fmt: skip


def failing_server(folder: Path, count: int, dice: random.Random) -> tuple[int, int]:
    """Deliver `count` items through random failures; return lost items and breaks of order."""
    taken: dict[str, list[int]] = {}
    clock = Clock(0.0)

    class Server:
        async def send(self, items: Sequence[Item]) -> None:
            await asyncio.sleep(0)
            if dice.random() < 0.5:
                raise dice.choice(
                    [
                        ServerTrouble("500", status=500),
                        Unreachable("reset"),
                        RateLimited("429", status=429, retry_after_s=2.0),
                    ]
                )
            numbers = [int.from_bytes(item.body[2:10], "little") for item in items]
            taken.setdefault(items[0].device, []).extend(numbers)
            if dice.random() < 0.1:
                raise Unreachable("the answer was lost")  # and the service has it

    async def wait(event: asyncio.Event, seconds: float) -> None:
        if delivery._running:
            await event.wait()
        else:
            clock.now += seconds

    async def work() -> None:
        for first in range(0, count, 100):
            await box.aput([chunk(first + at, f"kit{at % 4}") for at in range(100)])
        await delivery.flush(patience_s=1e12)

    with Outbox(folder, LIMITS) as box:
        delivery = Delivery(box, Server(), clock=clock, wait=wait, jitter=dice.random)
        asyncio.run(work())
    lost = breaks = 0
    for device in range(4):
        got = taken[f"kit{device}"]
        lost += len({at for at in range(count) if at % 4 == device} - set(got))
        # A batch may come again; within the first comings the order is the kit's.
        first_comings = list(dict.fromkeys(got))
        breaks += first_comings != sorted(first_comings)
    return lost, breaks


@contextlib.contextmanager
def _quiet() -> Iterator[tuple[Path, random.Random]]:
    """Give a folder and the dice; thousands of failures that are the point are not logged."""
    logging.disable(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name), random.Random(SEED)
    finally:
        logging.disable(logging.NOTSET)


def killed(smoke: bool) -> Iterator[Row]:
    """The outbox killed while it takes items: nothing that was acknowledged is lost."""
    count = 5 if smoke else 1000
    with _quiet() as (folder, dice):
        lost, duplicates, ordered = kills(folder, count, dice)
    yield Row(f"acknowledged items lost in {count} kills", lost, "items", 0, f"seed {SEED}",
              fault="killed while items are acknowledged", injected=count)  # fmt: skip
    yield Row("duplicates in those kills", duplicates, "items", count)
    yield Row("breaks of their order", 0 if ordered else 1, "breaks", 0)


def power(smoke: bool) -> Iterator[Row]:
    """Power cuts, replayed: writes of which the disk knew nothing are gone."""
    with _quiet() as (folder, dice):
        items, count = (30, 20) if smoke else (400, 1000)
        cuts, lost = lost_in_power_cuts(folder / "power", items, count, dice)
    yield Row(f"acknowledged items lost in {cuts} replayed power cuts", lost, "items", 0,
              f"seed {SEED}", fault="power cut: writes that were not synced are gone",
              injected=cuts)  # fmt: skip


def damaged(smoke: bool) -> Iterator[Row]:
    """Files damaged at random: what is whole is kept, and what is lost is said."""
    count = 24 if smoke else 3000
    with _quiet() as (folder, dice):
        found = damages(folder / "damage", count, dice)
    for at, (what, number) in enumerate(found.items()):
        yield Row(f"of {count} damages: {what}", number, "times", 0, f"seed {SEED}",
                  fault="damaged files", injected=0 if at else count)  # fmt: skip


def full(smoke: bool) -> Iterator[Row]:
    """Disks that fill up: nothing is lost, it is told, and it goes on."""
    with _quiet() as (folder, _):
        yield from full_disks(folder, 3 if smoke else 100)


def server(smoke: bool) -> Iterator[Row]:
    """A server that fails at random: everything arrives, in order."""
    count = 500 if smoke else 10_000
    with _quiet() as (folder, dice):
        lost, breaks = failing_server(folder / "server", count, dice)
    yield Row(f"items of {count} lost over a failing server", lost, "items", 0, f"seed {SEED}",
              fault="a server that fails at random", injected=count)  # fmt: skip
    yield Row("devices whose order broke", breaks, "devices", 0)


PARTS = (killed, power, damaged, full, server)
