"""Power cut in the middle of updates of an emulated board: what was reported is what it runs."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from tests.support.fota.emulated_board import Ending, emulated_board, updated

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "bootloader"
SEED = 20261123


def run(smoke: bool) -> Iterator[Row]:
    endings = asyncio.run(_trials(2 if smoke else 20))
    said = Counter(ending.status for ending in endings)
    control = f"{sum(ending.cuts for ending in endings)} cuts, seed {SEED}: " + ", ".join(
        f"{count} {status}" for status, count in sorted(said.items())
    )
    false = [ending for ending in endings if not ending.true]
    for status in ("SUCCEEDED", "FAILED"):
        wrong = sum(ending.status == status for ending in false)
        yield Row(f"power cut in an update: {status}, and not so", wrong, "", 0, control,
                  fault="power cut while the boot loader works",
                  injected=said[status])  # fmt: skip
    yield Row("power cut in an update: most pulls until its end", max(e.pulls for e in endings), "")


async def _trials(count: int) -> list[Ending]:
    draw = random.Random(SEED)
    endings = []
    for _ in range(count):
        stage = draw.choice(("upload", "swap", "swap", "confirm", "confirmed"))
        share, later_s = draw.random(), draw.uniform(0, 2)

        def reached(now: str, done: float, stage: str = stage, share: float = share) -> bool:
            return now == stage and (stage != "upload" or done >= share)

        with tempfile.TemporaryDirectory() as name:
            async with emulated_board(Path(name)) as board:
                endings.append(
                    await updated(
                        Path(name), board, reached, later_s=later_s if stage == "swap" else 0
                    )
                )
    return endings
