"""What the pytest plugin costs a project: installed and not used, switched on, and with a replay.

CPU time and peak memory of a whole run of pytest on one test, beside one that has no other plugin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "plugin-cost"
UNUSED_RATIO, UNUSED_MIB = 1.05, 1.0
ON_MS, ON_MIB = 25.0, 4.0
REPLAY_MS, REPLAY_MIB = 80.0, 8.0
_ON = 'pytest_plugins = ["agent.testing.plugin"]\n'
_EMPTY = "def test_it():\n    pass\n"
_REPLAYED = 'def test_it(modem_sync):\n    assert modem_sync.execute("AT+CESQ").ok\n'
_SESSION = "# transcript: 1\n> AT+CESQ\n< +CESQ: 99,99,255,255,19,47\n< OK\n"
_INSTALLED = ["-p", "at.pytest_plugin"]  # as its entry point has pytest load it
_MEASURED = """
import json, sys, time, pytest
code = pytest.main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([time.process_time() * 1000, int(peak.split()[1]) / 1024]))
sys.exit(code)
"""
PROJECTS = {
    "without": ("", _EMPTY, []),
    "unused": ("", _EMPTY, _INSTALLED),
    "on": (_ON, _EMPTY, _INSTALLED),
    "replay": (_ON, _REPLAYED, [*_INSTALLED, "--cellagent-kit=replay"]),
}


def run(smoke: bool) -> Iterator[Row]:
    rounds = 2 if smoke else 15
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROJECTS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder)
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        for _ in range(rounds + 1):  # the first may have byte code to write
            for project, (_, _, words) in PROJECTS.items():
                found[project].append(_used(words, environment, folder / project))
    # The best of many: what else runs can only add to it.
    ms = {name: min(each[0] for each in values[1:]) for name, values in found.items()}
    mib = {name: min(each[1] for each in values[1:]) for name, values in found.items()}
    control = f"without {ms['without']:.0f} ms, best of {rounds}"
    least = f"without {mib['without']:.1f} MiB"
    yield Row("unused", ms["unused"] / ms["without"], "x", UNUSED_RATIO, control)
    yield Row("unused, memory", mib["unused"] - mib["without"], "MiB more", UNUSED_MIB, least)
    yield Row("switched on", ms["on"] - ms["without"], "ms more", ON_MS, control)
    yield Row("switched on, memory", mib["on"] - mib["without"], "MiB more", ON_MIB, least)
    yield Row("first replay", ms["replay"] - ms["without"], "ms more", REPLAY_MS, control)
    yield Row("first replay, memory", mib["replay"] - mib["without"], "MiB more", REPLAY_MIB, least)


def _write(folder: Path) -> None:
    for project, (conftest, test, _) in PROJECTS.items():
        recordings = folder / project / "transcripts" / "test_it"
        recordings.mkdir(parents=True)
        (recordings / "test_it.transcript").write_text(_SESSION)
        for name, text in (("conftest", conftest), ("test_it", test)):
            (folder / project / f"{name}.py").write_text(text)
        (folder / project / "pytest.ini").write_text("[pytest]\n")


def _used(words: list[str], environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """Return the milliseconds of CPU that a run of pytest takes, and its peak MiB."""
    command = [sys.executable, "-c", _MEASURED, "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ms, mib = json.loads(done.stdout.splitlines()[-1])
    return ms, mib
