"""`modem record` and `import` as a person and a script use them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from command_line import completed

CELLAGENT = (sys.executable, "-m", "agent")


def run(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return completed("modem", *arguments, stdin=stdin, folder=folder)


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


def test_a_log_is_imported_from_a_file_or_a_pipe(tmp_path: Path) -> None:
    log = '[12:00:00] AT%CMNG=0,7,3,"c0ffee"\n[12:00:01] OK\n'
    piped = run(tmp_path, "import", "-", stdin=log)
    assert piped.returncode == 0, piped.stderr
    assert "c0ffee" not in piped.stdout
    assert "@1.000000 < OK" in piped.stdout
    (tmp_path / "terminal.log").write_text(log)
    made = run(tmp_path, "import", "terminal.log", "--output", "out.transcript", "--json")
    assert json.loads(made.stdout) == {"steps": 2, "skipped": 0, "output": "out.transcript"}
    assert (tmp_path / "out.transcript").stat().st_mode & 0o777 == 0o600
    assert run(tmp_path, "import", "terminal.log", "--output", "out.transcript").returncode == 4
    missing = run(tmp_path, "import", "missing.log")
    assert missing.returncode == 1
    assert "missing.log" in missing.stderr


def test_a_transcript_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "played.transcript").write_text("AT+CGMR\n")
    done = run(tmp_path, "replay", "played.transcript", "--pty", "played")
    assert done.returncode == 1
    assert "line 1 is no step" in done.stderr
