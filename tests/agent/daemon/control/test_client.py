"""What a command gets where no agent runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


async def test_no_agent_is_exit_code_3(tmp_path: Path):
    from command_line import cellagent

    done = await cellagent("status", "--json")
    assert done.code == 3
    assert done.lines[0]["error"]["kind"] == "not-running"
