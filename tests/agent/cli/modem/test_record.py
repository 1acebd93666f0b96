"""`modem record` as a person and a script use it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from at.virtual.state import SavedState
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import cellagent, completed
from tests.support.modem.secret_spellings import CANARY, spelled
from tests.support.provisioning.tray import tray_profile

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
    assert again.returncode == 4
    assert "exists already" in again.stderr
    assert f"virtual:{state} --update -- " in again.stderr


def test_a_program_that_cannot_be_run_leaves_the_name_of_the_recording_free(tmp_path: Path) -> None:
    record = ("record", "kit.transcript", "--port", "virtual:", "--")
    for program, code in (("./absent", 2), ("true", 0)):
        done = run(tmp_path, *record, program)
        assert done.returncode == code, done.stderr
        assert (tmp_path / "kit.transcript").exists() is (code == 0)


def test_a_recording_for_which_there_is_no_room_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "kit.transcript"
    port = "--port", "virtual:", "--pty", str(tmp_path / "modem")
    record = shlex.join([*CELLAGENT, "modem", "record", str(path), *port, "--", "true"])
    # No file may grow: as on a disk that is full.
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 0; exec {record}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, f"cannot write {path}: File too large" in done.stderr) == (1, True)
    assert not path.exists()


def test_a_session_that_has_no_room_any_more_ends_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "kit.transcript"
    session = (*CELLAGENT, "modem", "at", *["AT+CGMM"] * 50)
    record = shlex.join(
        [*CELLAGENT, "modem", "record", str(path), "--port", "virtual:", "--", *session]
    )
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; exec env PYTHONDONTWRITEBYTECODE=1 {record}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    told, hint = done.stderr.splitlines()[-2:]
    assert told == f"cellagent: cannot write {path}: File too large"
    assert "`ulimit -f unlimited`" in hint
    assert "Traceback" not in done.stderr
    assert "the session is in" not in done.stderr


def test_where_nothing_temporary_can_be_written_the_folders_are_named(tmp_path: Path) -> None:
    line = shlex.join([*CELLAGENT, "modem", "record", "--port", "virtual:", "--", "true"])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 0; exec {line}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    [told, hint] = done.stderr.splitlines()
    assert (done.returncode, "'/tmp'" in told, "TMPDIR" in hint) == (1, True, True)


@pytest.mark.contract("C9")
@pytest.mark.parametrize("registration", ["onboard", "public-key", "claim"])
async def test_a_recorded_provisioning_replays_without_the_board(
    registration: str, standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path, registration=registration)
    proof = ["--no-proof"] if registration == "claim" else []
    session = [*CELLAGENT, "provision", "run", "--set-clock", "--json", *proof]
    port, transcript = f"virtual:{tmp_path / 'kit.json'}", tmp_path / "kit.transcript"
    recorded = await cellagent("modem", "record", str(transcript), "--port", port, "--", *session)
    assert recorded.code == 0, recorded.err
    board = SavedState.decode((tmp_path / "kit.json").read_bytes())
    text = transcript.read_text()
    assert board.imei[:14] not in text
    assert board.uuid not in text
    assert "BEGIN CERTIFICATE" in text, "the CA's chain is no identity"

    again = ["modem", "replay", str(transcript), "--pty", str(tmp_path / "pty"), "--", *session]
    replayed = await cellagent(*again, environment={"CELLAGENT_STATE_DIR": str(tmp_path / "other")})
    assert replayed.code == 0, replayed.out + replayed.err
    ran = next(line for line in replayed.lines if "outcome" in line)
    assert (ran["outcome"], ran["uuid"]) == ("done", "00000000-0000-4000-8000-000000000001")


def test_identity_is_kept_on_request_alone(tmp_path: Path) -> None:
    record = ("record", "--port", f"virtual:{tmp_path / 'kit'}")
    session = ("--", *CELLAGENT, "modem", "at", "AT+CGSN=1", "AT%DEVICEUUID")
    for words in (["redacted"], ["--keep-identity", "kept"]):
        assert run(tmp_path, *record, *words, *session).returncode == 0
    board = SavedState.decode((tmp_path / "kit").read_bytes())
    kept, redacted = ((tmp_path / name).read_text() for name in ("kept", "redacted"))
    assert board.imei in kept
    assert board.uuid in kept
    assert board.imei not in redacted
    assert board.uuid not in redacted


# Types the lines of a file at the port, each when the one before is answered.
TYPIST = """
import os, pathlib, select, sys
ENDS = (b"OK\\r\\n", b"ERROR\\r\\n")
port = os.open(os.environ["CELLAGENT_PORT"], os.O_RDWR | os.O_NOCTTY)
for line in pathlib.Path(sys.argv[1]).read_text().split("\\0"):
    os.write(port, line.encode() + b"\\r")
    answer = b""
    while not answer.endswith(ENDS) and select.select([port], [], [], 20)[0]:
        answer += os.read(port, 4096)
"""


@pytest.mark.parametrize("keeping", [(), ("--keep-identity",)])
def test_no_spelling_of_a_secret_command_is_recorded_and_the_session_plays(
    tmp_path: Path, keeping: tuple[str, ...]
) -> None:
    lines = [
        line
        for _name, spelling, line, sent in spelled()
        if sent and line.count('"') % 2 == 0 and not spelling.startswith(("typed", "a coloured"))
    ][:: 3 if keeping else 2]
    (tmp_path / "lines").write_text("\0".join(lines))
    (tmp_path / "typist.py").write_text(TYPIST)
    typist = (sys.executable, "typist.py", "lines")
    record = ("record", "kit.transcript", "--port", "virtual:", *keeping)
    recorded = run(tmp_path, *record, "--", *typist)
    assert recorded.returncode == 0, recorded.stderr
    text = (tmp_path / "kit.transcript").read_text()
    assert text.count("{redacted:") >= len(lines)
    assert CANARY not in text + recorded.stdout + recorded.stderr
    replayed = run(tmp_path, "replay", "kit.transcript", "--pty", "played", "--", *typist)
    assert replayed.returncode == 0, replayed.stderr


def test_an_updated_recording_keeps_its_rules_and_a_failed_session_changes_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "kit.transcript"
    rules = "# transcript: 2\n> AT+CGMM\n< nRF{any}\n< OK\n"
    file.write_text(rules)
    words = ("record", "kit.transcript", "--update", "--port", "virtual:", "--")
    failed = run(tmp_path, *words, "sh", "-c", "exit 3")
    assert failed.returncode == 3
    assert "kit.transcript is left as it was: the session failed" in failed.stderr
    assert file.read_text() == rules
    done = run(tmp_path, *words, *CELLAGENT, "modem", "at", "AT+CGMM")
    assert done.returncode == 0, done.stderr
    assert "< nRF{any}" in file.read_text()
    assert "# device: nRF9161-LACA" in file.read_text()
    assert run(tmp_path, "record", "kit.transcript", "--port", "virtual:").returncode == 4
