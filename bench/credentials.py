"""Thirty credentials listed, as a whole process, beside nrfcredstore on the same virtual modem."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

from tests.support.modem.served_kit import PEERS, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "credentials"
RATIO = 1 / 18
COUNT = 30


def run(smoke: bool) -> Iterator[Row]:
    rounds = 1 if smoke else 5
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), "--instant") as kit:
        at = [sys.executable, "-m", "agent", "modem", "at", "--port", str(kit.port)]
        writes = "\n".join(f'AT%CMNG=0,{100 + n},0,"test {n}"' for n in range(COUNT))
        subprocess.run([*at, "-"], input=writes.encode(), check=True, capture_output=True)

        def ours() -> object:
            return subprocess.run([*at, "AT%CMNG=1"], check=True, capture_output=True, timeout=60)

        def theirs() -> object:
            return kit.run("nrfcredstore", "--cmd-type", "at", str(kit.port), "list")

        seconds = best(ours, rounds)
        if not (PEERS / "nrfcredstore").exists():
            why = f"ours took {seconds:.3f} s; ./scripts/peers brings nrfcredstore"
            yield Row(f"{COUNT} credentials listed", seconds, "s", skipped=why)
            return
        peer = best(theirs, rounds)
        control = f"nrfcredstore {peer:.2f} s, best of {rounds}"
        yield Row(f"{COUNT} credentials listed", seconds, "s", peer * RATIO, control,
                  peer=("nrfcredstore", peer))  # fmt: skip


def best(once: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        once()
        times.append(time.perf_counter() - started)
    return min(times)
