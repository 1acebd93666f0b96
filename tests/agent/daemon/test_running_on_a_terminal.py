"""The agent in a window of its own: it ends with the window, and SIGHUP alone reloads it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from tests.support.commands.running_agent import PATIENCE_S, virtual_kit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

CLOSED = """
import fcntl, sys, termios, os
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "agent", "run", "--json"])
"""


async def test_it_ends_with_its_terminal_and_not_at_a_reload(tmp_path: Path):
    await virtual_kit(tmp_path)
    ours, theirs = pty.openpty()
    where = {**os.environ, "CELLAGENT_PORT": str(tmp_path / "kit"), "CELLAGENT_PROFILE": "standin"}
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLOSED),
        env=where,
        stdin=theirs,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(theirs)
    assert agent.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            assert json.loads(await agent.stdout.readline())["ready"]
            agent.send_signal(signal.SIGHUP)
            done = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "agent", "reload"),
                env=where,
                stdout=asyncio.subprocess.DEVNULL,
            )
            assert await done.wait() == 0, "it runs, and was read again"
            os.close(ours)
            await agent.stdout.read()
            assert await agent.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            agent.kill()
