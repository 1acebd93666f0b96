"""What a bench loads: a process that lives a second pays for each package."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.support.cloud.standin import StandIn
from tests.support.provisioning.tray import ports, tray, tray_profile


def test_a_bench_loads_no_service_no_table_of_causes_and_no_redaction() -> None:
    unneeded = {"httpx", "rich", "agent.cloud", "at.causes.live", "at.protocol.redaction"}
    code = (
        "import sys, agent.provisioning.running.batch, agent.provisioning.boards.modem_board;"
        f"sys.exit(', '.join(sys.modules.keys() & {unneeded}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip() == ""


async def test_a_run_with_a_service_loads_no_terminal_library_and_not_every_command(
    standin: StandIn, tmp_path: Path
) -> None:
    tray_profile(standin, tmp_path)
    with tray(tmp_path, 1) as kits:
        run = await asyncio.create_subprocess_exec(
            *(sys.executable, "-X", "importtime", "-m", "agent", "provision", "run"),
            *(*ports(kits), "--set-clock", "--json"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, told = await asyncio.wait_for(run.communicate(), 60)
    assert run.returncode == 0, told
    loaded = {line.rpartition("|")[2].strip() for line in told.decode().splitlines()}
    assert "httpx" in loaded
    assert loaded & {"rich", "pygments", "agent.standin", "at.commands.catalog"} == set()
    # These kits have no Serial Modem and are no modules: what such can do is not loaded either.
    assert (
        loaded
        & {
            "at.provisioning_host",
            "at.commands.serial_modem.application",
            "at.commands.nrf93m1.module",
        }
        == set()
    )
