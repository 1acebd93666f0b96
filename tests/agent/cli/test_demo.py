"""The demonstration shows a person every step, in a fixed order."""

from __future__ import annotations

import subprocess
import sys

STEPS = ["find", "gate", "provision", "register", "jwt", "scan", "locate", "fota", "crash",
         "event", "outage"]  # fmt: skip


def test_a_person_sees_every_step_within_eighty_columns() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "agent", "demo"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert [
        line.split()[1] for line in ended.stdout.splitlines() if line.startswith("  ok")
    ] == STEPS
    assert "What next:" in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80
