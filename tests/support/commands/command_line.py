"""Runs `cellagent` in a process of its own."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """The JSON objects on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


async def cellagent(
    *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None
) -> Done:
    """Run `cellagent` beside a server that lives in the test's own loop."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agent",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    out, err = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


def completed(
    *arguments: str, stdin: str = "", folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run `cellagent` to its end, in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )


def with_bytes(*arguments: str, stdin: bytes = b"") -> tuple[int, list[dict[str, Any]], str]:
    """Run `cellagent` on bytes; return its exit code, the objects it printed, and its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "agent", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr.decode()


async def json_objects(
    *arguments: str, stdin: bytes = b""
) -> tuple[int, list[dict[str, Any]], str]:
    """Run `cellagent --json` beside a server in this loop; the result is that of `with_bytes`."""
    return await asyncio.to_thread(with_bytes, *arguments, "--json", stdin=stdin)


def private_text(file: str) -> str:
    """Return the text of a file that is 0600."""
    path = Path(file)
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_text()


def objects(run: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    """Return the JSON objects that a command printed, which no traceback has ended."""
    assert "Traceback" not in run.stderr, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]
