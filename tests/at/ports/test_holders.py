"""Who holds a port, as /proc shows it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from pty_far_end import PtyFarEnd

from at.ports.holders import holder_of

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")


def test_without_a_modem_manager_it_is_another_users_process(tmp_path: Path) -> None:
    assert holder_of(os.devnull, tmp_path) == "another user's process"


@POSIX
async def test_the_holder_is_named_though_it_is_another_process() -> None:
    with PtyFarEnd() as far:
        code = "import os, sys; os.open(sys.argv[1], os.O_RDWR); print(flush=True); input()"
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, far.path, stdin=-1, stdout=-1
        )
        assert other.stdout is not None
        await other.stdout.readline()
        try:
            assert f"(PID {other.pid})" in holder_of(far.path)
        finally:
            other.kill()
            await other.wait()
