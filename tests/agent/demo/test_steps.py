"""Every step of the demonstration succeeds, and its details say what it did."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

STEPS = ["find", "gate", "provision", "register", "jwt", "scan", "locate", "fota", "crash",
         "event", "outage"]  # fmt: skip


@pytest.mark.contract("C1", "C4", "C5", "C6", "C7", "C8")
def test_every_step_is_done_and_told_as_json() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "agent", "demo", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["step"] for line in lines[:-1]] == STEPS, ended.stderr
    assert all(line["ok"] for line in lines[:-1]), lines
    assert lines[-1]["summary"]["ok"] is True
    assert ended.returncode == 0
    by_name = {line["step"]: line["detail"] for line in lines[:-1]}
    assert by_name["locate"]["off_m"] <= by_name["locate"]["uncertainty_m"]
    assert by_name["fota"]["status"] == "SUCCEEDED"
    assert by_name["outage"]["lost"] == 0
