"""Thirty credentials listed, as a whole process, beside nrfcredstore on the same virtual modem."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "credentials"
PEER = Path(__file__).resolve().parent.parent / ".peers"
RATIO = 0.1
COUNT = 30


def run(smoke: bool) -> Iterator[Row]:
    rounds = 1 if smoke else 5
    with tempfile.TemporaryDirectory() as folder:
        kit = Path(folder) / "kit"
        modem = subprocess.Popen(
            [sys.executable, "-m", "agent", "modem", "virtual", "--instant", "--pty", str(kit)],
            stdout=subprocess.PIPE,
        )
        try:
            assert modem.stdout is not None
            assert json.loads(modem.stdout.readline())["ready"]
            at = [sys.executable, "-m", "agent", "modem", "at", "--port", str(kit)]
            writes = "\n".join(f'AT%CMNG=0,{100 + n},0,"test {n}"' for n in range(COUNT))
            subprocess.run([*at, "-"], input=writes.encode(), check=True, capture_output=True)
            ours = statistics.median(timed([*at, "AT%CMNG=1"]) for _ in range(rounds))
            if not (PEER / "bin" / "nrfcredstore").exists():
                yield Row(
                    f"{COUNT} credentials listed",
                    ours,
                    "s",
                    skipped=f"ours took {ours:.3f} s; scripts/peers brings nrfcredstore",
                )
                return
            peer = [str(PEER / "bin" / "nrfcredstore"), "--cmd-type", "at", str(kit), "list"]
            theirs = statistics.median(timed(peer) for _ in range(rounds))
            yield Row(
                f"{COUNT} credentials listed",
                ours,
                "s",
                theirs * RATIO,
                f"nrfcredstore {theirs:.2f} s",
            )
        finally:
            modem.terminate()
            modem.wait()


def timed(command: list[str]) -> float:
    environ = {**os.environ, "CELLAGENT_PTY": "1"}
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, timeout=60, env=environ)
    return time.perf_counter() - started
