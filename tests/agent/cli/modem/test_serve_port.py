"""A served terminal is there as long as it is served."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent.cli.modem.serve_port import serve_terminal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")


async def test_no_link_is_left_once_a_terminal_is_served_no_more(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        serve_terminal(stack, str(tmp_path / "kit"), lambda _data: None)
        assert (tmp_path / "kit").is_char_device()
    assert not (tmp_path / "kit").is_symlink()
