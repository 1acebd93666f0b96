"""`modem import` as a person and a script use it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support.commands.command_line import completed
from tests.support.modem.secret_spellings import CANARY, spelled


def run(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return completed("modem", *arguments, stdin=stdin, folder=folder)


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
    assert missing.returncode == 2
    assert "missing.log" in missing.stderr


def test_identity_is_kept_on_request_alone(tmp_path: Path) -> None:
    log = 'AT+CGSN=1\n+CGSN: "352656100367872"\nOK\n'
    assert "352656100367872" not in run(tmp_path, "import", "-", stdin=log).stdout
    kept = run(tmp_path, "import", "-", "--keep-identity", stdin=log)
    assert '+CGSN: "352656100367872"' in kept.stdout


def test_a_log_of_another_kind_is_refused_and_half_a_log_is_warned_of(tmp_path: Path) -> None:
    other = run(tmp_path, "import", "-", "--output", "out", stdin="[DBG ][main]: starting\n")
    assert other.returncode == 1
    assert "looks like Mbed OS" in other.stderr
    assert "put TX:" in other.stderr
    assert not (tmp_path / "out").exists()
    half = run(tmp_path, "import", "-", stdin="AT> AT+CGMR\nAT> AT\n")
    assert half.returncode == 0
    assert "> AT+CGMR" in half.stdout
    assert "warning: nothing in this log was received" in half.stderr
    whole = run(tmp_path, "import", "-", stdin="AT> AT+CGMR\nAT< OK\n")
    assert "warning" not in whole.stderr


def test_a_log_without_end_is_refused(tmp_path: Path) -> None:
    endless = run(tmp_path, "import", "/dev/zero")
    assert endless.returncode == 1
    assert "/dev/zero: over 256 MiB, or without end" in endless.stderr


def test_no_spelling_of_a_secret_command_or_answer_is_imported(tmp_path: Path) -> None:
    lines = [
        f"{'TX' if sent else 'RX'}: {line}\nRX: ERROR\n"
        for _name, _spelling, line, sent in spelled()
        if line.count('"') % 2 == 0
    ]
    (tmp_path / "terminal.log").write_text("TX: AT\nRX: OK\n" + "".join(lines))
    made = run(tmp_path, "import", "terminal.log", "-vv")
    assert made.returncode == 0, made.stderr
    assert made.stdout.count("{redacted:") > 1000
    assert CANARY not in made.stdout + made.stderr
