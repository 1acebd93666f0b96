"""What grows with the number of boards, stations, devices, items, lines, bytes, kits: curves."""

from __future__ import annotations

import asyncio
import hashlib
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from outbox import batched, item
from provisioning import in_this_process
from running import at_rest
from standin import getter, running
from trials.measure import Row, median_us

from agent.config.profile import OutboxSettings
from agent.fota.jobs import FirmwareType, Job
from agent.fota.verification import TrustPolicy, prove
from agent.outbox import Outbox
from at.transcripts.transcript import parse_transcript
from tests.support.fota.signed_images import signed_image
from tests.support.keys.operator_ca import make_ca
from tests.support.provisioning.postgres import PostgresMissing, postgres_if_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NAME = "growth"
LEVEL = 1.5
"""Times the cost of one at the smallest size, where the size is to cost nothing."""
KIT_MB = 0.5
HEAD = "# device: any LTE modem; origin: written by hand\n"
STEP = "> AT+CESQ\n< +CESQ: 99,99,255,255,19,47\n< OK\n"


def run(smoke: bool) -> Iterator[Row]:
    few = 2 if smoke else 9
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield boards(folder, (1, 2, 4, 8, 16)[:few])
        yield stations(folder, (1, 2, 4, 8)[:few])
        yield devices((10, 1_000, 100_000)[:few])
        yield items(folder, (0, 1_000, 10_000, 100_000)[:few])
        yield lines((100, 1_000, 10_000, 100_000)[:few])
        yield image(folder, (16, 64, 256, 960)[:few])
    if Path("/proc/self/smaps_rollup").exists():
        yield kits((1, 4, 16, 64)[:few])


def curve(
    what: str, unit: str, sizes: Sequence[int], cost: Callable[[int], float], goal: float | None
) -> Row:
    """Return how many times as much the largest size costs as the smallest."""
    points = tuple((float(size), cost(size)) for size in sizes)
    shown = ", ".join(f"{size:,.0f}: {value:.3g}" for size, value in points)
    ratio = points[-1][1] / points[0][1]
    return Row(what, ratio, "x", goal, f"{unit} at {shown}", points=points)


def boards(folder: Path, sizes: Sequence[int]) -> Row:
    make_ca(folder)
    made = iter(range(0, 10_000, 100))

    def cost(size: int) -> float:
        return min(asyncio.run(in_this_process(folder, size, next(made)))[0] for _ in range(2))

    return curve("boards provisioned at once", "s", sizes, cost, LEVEL)


def stations(folder: Path, sizes: Sequence[int]) -> Row:
    sys.path.append(str(Path(__file__).resolve().parent.parent / "soak"))
    from many_stations import at_once

    what = "stations on one ledger, 99 % of their claims"
    try:
        with postgres_if_there() as server:
            return curve(
                what, "ms", sizes,
                lambda size: 1000 * at_once(server, folder, size, 10 * size).claim_s, None,
            )  # fmt: skip
    except PostgresMissing as missing:
        return Row(what, 0.0, "x", skipped=str(missing))


def devices(sizes: Sequence[int]) -> Row:
    def cost(size: int) -> float:
        with running("-m", "agent", "cloud", "serve", "--devices", str(size)) as (ready, _):
            get = getter(ready)
            return median_us(lambda: get("/v1/devices/nrf-352156000000007"), 300)

    return curve("a device fetched from a fleet", "us", sizes, cost, LEVEL)


def items(folder: Path, sizes: Sequence[int]) -> Row:
    limits = OutboxSettings(max_bytes=1 << 40, max_items=1 << 40)

    def cost(size: int) -> float:
        with Outbox(folder / f"box{size}", limits) as box:
            for _ in range(size // 100):
                box.put([item() for _ in range(100)])
            return 1e6 * statistics.median(batched(box, 1000) for _ in range(5))

    return curve("an item taken while so many wait", "us", sizes, cost, LEVEL)


def lines(sizes: Sequence[int]) -> Row:
    def cost(size: int) -> float:
        text = HEAD + STEP * size
        return median_us(lambda: parse_transcript(text), 3) / size

    return curve("a step of a transcript read", "us", sizes, cost, LEVEL)


def image(folder: Path, sizes: Sequence[int]) -> Row:
    def cost(size: int) -> float:
        path = signed_image(folder, body=bytes(size << 10))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        job = Job("j", FirmwareType.APP, "h", ("p",), path.stat().st_size, "2.0.1")
        return median_us(lambda: prove(path, job, digest, TrustPolicy()), 9) / size

    return curve("a KiB of an image proven", "us", sizes, cost, LEVEL)


def kits(sizes: Sequence[int]) -> Row:
    found = tuple((float(size), at_rest(size, 3.0 + size / 20, 0.1)[0]) for size in sizes)
    (first, one), (last, many) = found[0], found[-1]
    shown = ", ".join(f"{size:.0f}: {value:.1f}" for size, value in found)
    each = (many - one) / (last - first)
    return Row("a further kit that is watched", each, "MB", KIT_MB, f"MB at {shown}", points=found)
