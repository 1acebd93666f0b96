"""The command tree: what a command imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
