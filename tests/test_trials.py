"""The benchmarks and the soak runs are found by their names, and work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def trial(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "name"), [("bench.py", "driver-round-trip"), ("soak.py", "late-answers")]
)
def test_every_module_is_listed_by_its_name(script: str, name: str) -> None:
    assert name in trial(script, "--list").stdout.splitlines()


@pytest.mark.parametrize(
    "name", ["fuzz", "mixed-lines", "late-answers", "redacted-recordings", "year"]
)
def test_a_short_soak_finds_nothing(name: str) -> None:
    run = trial("soak.py", name, "--smoke", "--json")
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert rows, run.stderr
    assert [row["what"] for row in rows if not row["ok"]] == []
