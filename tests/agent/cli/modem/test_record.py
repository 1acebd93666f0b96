"""`modem record` as a person and a script use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from command_line import completed

CELLAGENT = (sys.executable, "-m", "agent")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return completed("modem", *arguments, folder=folder)


def test_a_session_is_recorded_and_replayed(tmp_path: Path) -> None:
    session = (*CELLAGENT, "modem", "at", "AT+CGMM", "AT%JWT")
    state = tmp_path / "kit.state"
    recorded = run(
        tmp_path, "record", "kit.transcript", "--port", f"virtual:{state}", "--", *session
    )
    assert recorded.returncode == 0, recorded.stderr
    path = tmp_path / "kit.transcript"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert "# device: nRF9161-LACA\n# firmware: mfw_nrf91x1_2.0.4\n" in text
    token = next(line for line in recorded.stdout.splitlines() if "JWT" in line).split('"')[1]
    assert token.split(".")[2] not in text

    replayed = run(tmp_path, "replay", "kit.transcript", "--pty", "replayed", "--", *session)
    assert replayed.returncode == 0, replayed.stderr
    assert "nRF9161-LACA" in replayed.stdout
    again = run(tmp_path, "record", "kit.transcript", "--port", f"virtual:{state}", "--", *session)
    assert again.returncode == 1
    assert "exists already" in again.stderr
