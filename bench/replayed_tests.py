"""A thousand tests that replay a recording beside a thousand that do nothing, in one run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trials.measure import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "replayed-tests"
RATIO = 2.0
FILES = 10  # of each kind, by turns, so that both find the machine alike
# What pytest's protocol of a test costs, by the beginning of its file's name.
CONFTEST = """
import collections, json, time, pytest

pytest_plugins = ["agent.testing.plugin"]
spent = collections.Counter()

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    began = time.process_time()
    try:
        return (yield)
    finally:
        spent[item.path.stem.split("_")[2]] += time.process_time() - began

def pytest_unconfigure(config):
    (config.rootpath / "spent.json").write_text(json.dumps(spent))
"""
INI = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
TEST = """
import pytest

@pytest.mark.parametrize("number", range({count}))
async def test_it({fixture}number):
    {body}
"""
BODIES = {
    "empty": ("", "pass"),
    "replayed": ("modem, ", 'assert (await modem.execute("AT+CESQ")).ok'),
}
SESSION = "# transcript: 1\n> AT+CESQ\n< +CESQ: 99,99,255,255,19,47\n< OK\n"


def run(smoke: bool) -> Iterator[Row]:
    count, runs = (10, 1) if smoke else (100, 5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, count)
        _pytest(folder)  # it compiles what it imports, as the first run of any project does
        spent = [_pytest(folder) for _ in range(runs)]
    # The best of them: what else runs on the machine can only add to it.
    empty, replayed = (min(one[kind] for one in spent) * 1000 for kind in BODIES)
    control = f"{count * FILES} empty ones {empty:.0f} ms, best of {runs}, x{replayed / empty:.2f}"
    yield Row(f"{count * FILES} replayed tests", replayed, "ms", empty * RATIO, control)


def _write(folder: Path, count: int) -> None:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text(INI)
    for number in range(FILES):
        for kind, (fixture, body) in BODIES.items():
            text = TEST.format(count=count, fixture=fixture, body=body)
            (folder / f"test_{number}_{kind}.py").write_text(text)
        recordings = folder / "transcripts" / f"test_{number}_replayed"
        recordings.mkdir(parents=True)
        for test in range(count):
            (recordings / f"test_it[{test}].transcript").write_text(SESSION)


def _pytest(folder: Path) -> dict[str, float]:
    """Run the tests; return the CPU seconds of each kind."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--cellagent-kit=replay"], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    spent: dict[str, float] = json.loads((folder / "spent.json").read_text())
    return spent
