"""A command that starts warm is what one that starts cold is: see `tests/support/harness`."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands.on_a_terminal import take_terminal
from tests.support.commands.user_project import UserProject
from tests.support.harness import warm_start

pytestmark = pytest.mark.skipif(
    not warm_start.CAN_START, reason="it stands on Linux alone, on machines whose calls it knows"
)
COMMAND = [sys.executable, "-m", "agent"]


def _warm(process: subprocess.Popen[bytes]) -> bool:
    """Return True if a process was forked by the server and did not begin as one of its own."""
    return "warm_start" in Path(f"/proc/{process.pid}/cmdline").read_text()


def _both(
    monkeypatch: pytest.MonkeyPatch, *arguments: str, **told: Any
) -> list[tuple[int, bytes, bytes]]:
    """What a command did that started warm, and what it did where it may not."""
    ends = []
    for may in (True, False):
        with monkeypatch.context() as patched:
            if not may:
                patched.setattr(warm_start.WarmStart, "may_start", lambda *_: False)
            done = subprocess.run([*COMMAND, *arguments], capture_output=True, check=False, **told)
            ends.append((done.returncode, done.stdout, done.stderr))
    return ends


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["config", "show"],
        ["outbox", "list", "--json"],
        ["modem", "at", "--port", "virtual:", "AT+CGSN"],
        ["modem", "signal"],
        ["modem", "decode", "-"],
        ["no-such-command"],
        ["config", "set", "kit.port", "caf\udce9"],
    ],
    ids=" ".join,
)
def test_it_prints_and_ends_as_a_cold_one(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    warm, cold = _both(monkeypatch, *arguments, input=b"AT+CFUN?\r\n+CFUN: 1\r\nOK\r\n")
    assert warm == cold


def test_its_folder_and_environment_are_those_that_it_was_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text("AT+CFUN?\n+CFUN: 1\nOK\n")
    environment = {**os.environ, "CELLAGENT_PROFILE": "desk", "COLUMNS": "60", "TZ": "Asia/Tokyo"}
    for arguments in (["modem", "why", "log.txt"], ["config", "show"], ["modem", "--help"]):
        warm, cold = _both(monkeypatch, *arguments, cwd=tmp_path, env=environment)
        assert warm == cold
        assert warm[1] or b"desk" in warm[2]


OF_A_USER = """
from pathlib import Path

def test_passes(modem_sync):
    assert modem_sync.execute("AT+CGMM").ok

def test_fails(modem_sync):
    Path("began").write_text(Path("/proc/self/cmdline").read_text())
    assert modem_sync.execute("AT+CGMR").lines == ("mfw",)
"""


@pytest.mark.parametrize("unwritten", ["", "1"])
def test_pytest_of_a_user_finds_and_rewrites_its_plugins_as_a_cold_one(
    unwritten: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`-W error`: it warns of a plugin that was imported before, which it cannot rewrite."""
    told = []
    for name in ("warm", "cold"):
        (tmp_path / name).mkdir()
        project = UserProject(tmp_path / name / "project")
        switch = (project.folder / "conftest.py").read_text()
        project.write("conftest.py", f"import sys\nassert 'agent' not in sys.modules\n{switch}")
        (project.folder / "tests").mkdir()
        project.write("tests/__init__.py", "")
        project.write("tests/test_it.py", OF_A_USER)
        with monkeypatch.context() as patched:
            if name == "cold":
                patched.setattr(warm_start.WarmStart, "may_start", lambda *_: False)
            environment = {"PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": unwritten}
            printed = project.run("-W", "error", "-v", code=1, **environment)
        began = (project.folder / "began").read_text()
        assert ("warm_start" in began) is (name == "warm")
        assert (project.folder / "__pycache__").exists() is not bool(unwritten)
        told.append(re.sub(rf"in [0-9.]+s|0x\w+|=|/{name}/", "", printed).splitlines())
    assert told[0] == told[1]


def test_it_is_a_child_of_the_test_with_group_and_mask_and_dies_by_its_signal(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [*COMMAND, "modem", "virtual", "--pty", str(tmp_path / "kit")],
        stdout=subprocess.PIPE,
        start_new_session=True,
        umask=0o077,
    ) as process:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline()
        assert _warm(process)
        assert os.getsid(process.pid) == process.pid
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        assert "Umask:\t0077\n" in status
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_its_terminal_is_its_own_where_it_was_told_to_take_one(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "modem", "virtual", "--pty", str(tmp_path / "kit")],
        stdin=theirs,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
    ) as process:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline()
        assert _warm(process)
        behind_name = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        assert int(behind_name[4]) == os.fstat(theirs).st_rdev
        os.write(ours, b"\x03")
        assert process.wait(30) in {0, -signal.SIGINT, 130}
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize(
    "told",
    [
        {"env": {**os.environ, "PYTHONUTF8": "1"}},
        {"env": {**os.environ, "LC_ALL": "C"}},
        {"preexec_fn": lambda: None},
        {"pass_fds": (2,)},
    ],
    ids=["interpreter", "locale", "function", "descriptors"],
)
def test_what_a_fork_cannot_be_told_starts_cold(told: dict[str, Any], tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "modem", "virtual", "--pty", str(tmp_path / "kit")],
        stdout=subprocess.PIPE,
        **told,
    ) as process:
        assert b"ready" in process.stdout.readline()
        assert not _warm(process)
        process.kill()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_whether_its_output_is_kept_back_is_told_to_a_fork_too(
    unbuffered: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    stream = warm_start._text(1, sys.__stdout__, "wb")
    assert stream.write_through is bool(unbuffered)
    stream.detach()
    with subprocess.Popen(
        [*COMMAND, "modem", "virtual", "--pty", str(tmp_path / "kit")], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline()
        assert _warm(process)
        process.kill()


@pytest.mark.parametrize("how", [signal.SIG_IGN, signal.SIG_DFL], ids=["ignored", "usual"])
def test_it_ignores_the_signals_that_the_test_ignores(how: signal.Handlers) -> None:
    """As a cold one does: `nohup` around the whole suite is not to reach it past the test."""
    before = signal.signal(signal.SIGHUP, how)
    try:
        process = subprocess.Popen(
            [*COMMAND, "modem", "decode"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert _warm(process)
        process.stdin.write(b"+CEREG: 1\r\n")
        process.stdin.flush()
        assert process.stdout.readline()
        status = Path(f"/proc/{process.pid}/status").read_text()
        (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
        assert bool(int(mask, 16) >> (signal.SIGHUP - 1) & 1) is (how is signal.SIG_IGN)
        process.stdin.close()
        assert process.wait(30) == 0


def test_it_ends_with_a_terminal_of_its_own_though_the_test_ignores_that(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [*COMMAND, "modem", "virtual", "--pty", str(tmp_path / "kit")],
            stdin=theirs,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
        )
    finally:
        signal.signal(signal.SIGHUP, before)
        os.close(theirs)
    with process:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline()
        assert _warm(process)
        os.close(ours)
        assert process.wait(30) in {-signal.SIGHUP, 128 + signal.SIGHUP}
