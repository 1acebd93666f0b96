"""The command tree: what a command imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import agent

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("modem --help", {"asyncio", "serial", "httpx", "sqlite3", "pathlib"}),
        ("modem decode", {"asyncio", "serial", "httpx", "sqlite3"}),
        ("modem at --port virtual: AT%CMNG=1", {"httpx", "at.commands.credentials"}),
        ("provision export --as csv", {"httpx", "cryptography"}),
        ("config set kit.port virtual:", {"asyncio", "serial", "httpx", "sqlite3"}),
    ],
)
def test_a_command_loads_nothing_that_it_does_not_use(words: str, unneeded: set[str]) -> None:
    code = (
        "import sys; sys.argv = ['cellagent', *sys.argv[1:]]\n"
        "from agent.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *words.split()],
        input="+CEREG: 1\r\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert not set(run.stderr.split()) & unneeded
    assert run.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes a stream")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("modem why - <&-", "the log is empty"),
        ("modem import - <&-", "the log is empty"),
        ("modem decode <&-", ""),
        ("config set api_key <&-", "api_key"),
        ("--version >&-", ""),
        ("device list --profile none 2>&-", ""),
    ],
)
def test_a_stream_that_the_caller_closed_is_an_empty_one(words: str, says: str) -> None:
    command = f'exec "{sys.executable}" -m agent {words}'
    run = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert "Traceback" not in run.stderr + run.stdout
    assert says in run.stderr


def test_the_version_is_told_before_anything_else_is_imported() -> None:
    script = "import agent.cli.main; agent.cli.main.main()"
    for command in (["-c", script], ["-m", "agent"]):
        run = subprocess.run(
            [sys.executable, "-X", "importtime", *command, "--version"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        assert (run.returncode, run.stdout) == (0, f"cellagent, version {agent.__version__}\n")
        assert not set(run.stderr.split()) & {"click", "re"}
    spelt = [sys.executable, "-m", "agent", "--version", "modem"]  # as click reads it
    assert subprocess.check_output(spelt, text=True, cwd=ROOT) == run.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full is Linux's")
@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--version", "output: No space left on device"),
        ("--help", "output: No space left on device"),
        ("config path", "output: No space left on device"),
        ("config path --json", "output: No space left on device"),
        ("config show no.such --json", "there is no key 'no.such'"),
    ],
)
def test_a_full_disk_behind_the_output_is_told(words: str, says: str, buffered: str) -> None:
    command = [sys.executable, "-m", "agent", *words.split()]
    environment = os.environ | {"PYTHONUNBUFFERED": buffered}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        run = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            check=False,
            env=environment,
        )
    assert run.returncode in {1, 2}
    assert run.stderr.startswith(f"cellagent: {says}")
    assert "Traceback" not in run.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full is Linux's")
def test_a_full_disk_behind_the_log_changes_nothing_of_how_a_command_ends() -> None:
    command = [sys.executable, "-m", "agent", "modem", "at", "AT", "--port", "virtual:", "-vv"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, cwd=ROOT, check=False)
    assert (run.returncode, run.stdout) == (0, b"OK\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe that nobody reads is of POSIX")
@pytest.mark.parametrize("words", ["--version", "--help", "fota pull --help", "config path"])
def test_a_reader_that_has_gone_is_no_failure(words: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        run = subprocess.run(
            [sys.executable, "-m", "agent", *words.split()],
            stdout=writes,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            check=False,
        )
    finally:
        os.close(writes)
    assert (run.returncode, run.stderr) == (0, b"")


INTERRUPTED_IMPORT = """
import signal, sys

MODULE = sys.argv[1]

class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == MODULE:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
from agent.cli.main import main
sys.meta_path.insert(0, CtrlC())
sys.argv = ["cellagent", *sys.argv[2:]]
main()
"""


@pytest.mark.parametrize(
    "module", ["agent.cli.framework.command", "click", "asyncio.trsock", "agent.cli.modem.check"]
)
def test_ctrl_c_while_a_command_is_still_imported_ends_it_without_a_traceback(
    module: str, private_home: Path
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, module, "modem", "check", "--port", "virtual:"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 130, run.stderr
    assert run.stderr.strip() in {"", "cellagent: stopped by Ctrl-C"}


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("agent.wiring.secret_trials", "login api_key --profile public"),
        ("agent.cli.capture.chunk_sources", "report chunks - --device-serial kit-1"),
    ],
)
def test_ctrl_c_that_came_before_standard_input_is_read_ends_that(
    module: str, words: str, private_home: Path
) -> None:
    reads, writes = os.pipe()
    try:
        run = subprocess.run(
            [sys.executable, "-c", INTERRUPTED_IMPORT, module, *words.split()],
            stdin=reads,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,  # nothing comes, and no end
            check=False,
        )
    finally:
        os.close(reads)
        os.close(writes)
    assert (run.returncode, run.stderr.strip()) == (130, "cellagent: stopped by Ctrl-C")


def test_ctrl_c_before_a_command_has_begun_leaves_nothing_to_warn_of(private_home: Path) -> None:
    code = """
import signal, sys
from agent.cli.framework import event_loop

def interrupted():
    signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
event_loop.CommandLoop = interrupted
sys.argv = ["cellagent", "modem", "check", "--port", "virtual:"]
from agent.cli.main import main
main()
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (run.returncode, run.stderr.strip()) == (130, "cellagent: stopped by Ctrl-C")


def test_the_traceback_of_a_defect_shows_no_secret(private_home: Path) -> None:
    code = """
import sys
from agent.cli.framework import event_loop

def defect():
    raise RuntimeError("sent: Bearer 0123456789abcdef")

event_loop.CommandLoop = defect
sys.argv = ["cellagent", "modem", "check", "--port", "virtual:"]
from agent.cli.main import main
main()
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert run.returncode == 1
    assert run.stderr.startswith("Traceback (most recent call last):\n")
    assert run.stderr.endswith("\nRuntimeError: sent: Bearer [secret]\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no HOME")
def test_an_empty_home_is_as_one_that_is_not_set() -> None:
    import pwd

    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    where = [sys.executable, "-m", "agent", "config", "path", "--json"]
    shown = [
        subprocess.run(where, env=own | more, capture_output=True, text=True, check=True).stdout
        for more in ({"HOME": ""}, {})
    ]
    assert shown[0] == shown[1]
    assert pwd.getpwuid(os.getuid()).pw_dir in shown[0]
