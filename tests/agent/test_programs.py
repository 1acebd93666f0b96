"""Programs of the user's, and how they are ended."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from agent import programs


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell and named pipes")
async def test_nothing_of_a_program_that_ignores_sigterm_goes_on_where_its_end_is_not_awaited(
    tmp_path: Path,
) -> None:
    works = tmp_path / "works"
    os.mkfifo(works)
    told = asyncio.create_task(asyncio.to_thread(works.read_text))
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"trap '' TERM; (echo begun; sleep 5; echo went on >&3) 3>'{works}'; :"),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"begun\n"
    ending = asyncio.create_task(programs.end(process))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert await told == ""
    await process.wait()
