"""Runs the command line beside a server that lives in the test's own loop."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
    """Run `cellagent` in a process of its own, with the test's private home."""
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
