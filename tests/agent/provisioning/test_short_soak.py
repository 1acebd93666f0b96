"""The soak of the bench in its short form: it works, and finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.contract("C10")
@pytest.mark.timeout(300)
def test_a_short_soak_of_the_bench_finds_nothing() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/soak.py", "provisioning", "--smoke", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(rows) >= 7, run.stderr
    assert [row["what"] for row in rows if not row["ok"]] == [], run.stdout
