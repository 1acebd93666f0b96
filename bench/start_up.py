"""From the shell to the first byte: what our command costs over a bare interpreter.

Counted in CPU time, which start-up is made of: what else runs on the machine adds to the wall's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from pty_modem import serving
from trials.measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "start-up"
VERSION_MS, HELP_MS, AT_RATIO = 15.0, 30.0, 1.2
OURS = "from agent.cli.main import main; main()"  # what the installed command runs
SPEAKS = "import asyncio, click, at.transport.event_loop; from at import Modem"
"""What no command that speaks to a modem can do without."""


def run(smoke: bool) -> Iterator[Row]:
    rounds = 3 if smoke else 15
    with serving(modem_cpu=1, host_cpu=None) as path:
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "version": [sys.executable, "-c", OURS, "--version"],
            "help": [sys.executable, "-c", OURS, "--help"],
            "speaks": [sys.executable, "-c", SPEAKS],
            "at": [sys.executable, "-c", OURS, "modem", "at", "--port", path, "AT"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds + 1):  # the first may have byte code to write
            for name, command in commands.items():
                times[name].append(cpu_ms(command))
    # The best of many: what else runs can only add to it.
    ms = {name: min(values) for name, values in times.items()}
    control = f"bare interpreter {ms['bare']:.1f} ms, best of {rounds}"
    yield Row("--version over bare", ms["version"] - ms["bare"], "ms", VERSION_MS, control)
    yield Row("--help over bare", ms["help"] - ms["bare"], "ms", HELP_MS, control)
    told = f"{ms['at']:.1f} ms, its imports {ms['speaks']:.1f}"
    yield Row("modem at AT over its imports", ms["at"] / ms["speaks"], "x", AT_RATIO, told)


def cpu_ms(command: list[str]) -> float:
    """Return the milliseconds of user and system time that a command takes."""
    # Its stderr is ours: where it fails, that says why.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return (usage.ru_utime + usage.ru_stime) * 1000
