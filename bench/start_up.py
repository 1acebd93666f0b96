"""From the shell to the first byte: what our command costs over a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from measure import Row
from pty_modem import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "start-up"
VERSION_MS, AT_MS = 50.0, 150.0


def run(smoke: bool) -> Iterator[Row]:
    rounds = 3 if smoke else 15
    with serving(modem_cpu=1, host_cpu=None) as path:
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "version": [sys.executable, "-m", "agent", "--version"],
            "at": [sys.executable, "-m", "agent", "modem", "at", "--port", path, "AT"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, timeout=60)
                times[name].append((time.perf_counter() - started) * 1000)
    # The best of many: start-up is CPU time, and what else runs can only add to it.
    ms = {name: min(values) for name, values in times.items()}
    control = f"bare interpreter {ms['bare']:.1f} ms, best of {rounds}"
    yield Row("--version over bare", ms["version"] - ms["bare"], "ms", VERSION_MS, control)
    yield Row("modem at AT over bare", ms["at"] - ms["bare"], "ms", AT_MS, control)
