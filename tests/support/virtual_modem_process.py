"""`cellagent modem virtual` as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def started(*options: str) -> subprocess.Popen[str]:
    """Start the command; its ready line is on its standard output."""
    return subprocess.Popen(
        [sys.executable, "-m", "agent", "modem", "virtual", "--instant", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def modem_virtual(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run the command until the block ends; give its process and its ready line."""
    server = started(*options)
    assert server.stdout is not None
    try:
        yield server, json.loads(server.stdout.readline())
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(60)
        server.stdout.close()
