"""Boards go on where nobody reads what `cellagent provision run` prints of them."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import cellagent
from tests.support.provisioning.tray import ports, tray, tray_profile


async def started(output: int, *words: str) -> Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "provision", "run", *words, "--set-clock"),
        stdout=output,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(output)
    return process


async def ended(process: Process) -> tuple[int | None, bytes, list[str]]:
    """Return the exit code, what was written on standard error, and how the boards ended."""
    _out, err = await asyncio.wait_for(process.communicate(), 60)
    boards = (await cellagent("provision", "status", "--json")).lines
    return process.returncode, err, [board["outcome"] for board in boards]


@pytest.mark.parametrize("options", [(), ("--json",)])
async def test_boards_go_on_where_the_reader_of_their_results_has_seen_enough(
    standin: StandIn, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """As `| head -1` does: the second board is slower, so it is at work by then."""
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as fast, tray(tmp_path, 1, "--fault", "slow=0.2", first=1) as slow:
        reads, writes = os.pipe()
        process = await started(writes, *ports([*fast, *slow]), *options)
        assert b"done" in await asyncio.to_thread(os.read, reads, 4096)
        os.close(reads)
        code, err, outcomes = await ended(process)
    assert code == 0, err
    assert b"Broken pipe" in err
    assert outcomes == ["done", "done"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it plays the disk that is full")
async def test_boards_go_on_where_their_results_cannot_be_written_and_it_is_a_failure(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 2) as kits:
        process = await started(os.open("/dev/full", os.O_WRONLY), *ports(kits))
        code, err, outcomes = await ended(process)
    assert code == 1, err
    assert b"`cellagent provision status` tells how they ended" in err
    assert outcomes == ["done", "done"]
