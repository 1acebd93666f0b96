"""The command tree: what a command imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_decode_and_help_load_no_port_and_no_event_loop() -> None:
    code = (
        "import sys; sys.argv = ['cellagent', 'modem', *sys.argv[1:]]\n"
        "from agent.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    for arguments in (["--help"], ["decode"]):
        run = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            input="+CEREG: 1\r\n",
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,
            check=False,
        )
        assert not set(run.stderr.split()) & {"asyncio", "serial", "httpx", "sqlite3"}
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
