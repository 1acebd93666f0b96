"""The agent is the host of a kit that takes provisioning commands, and says how that ended."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from at.virtual.command_line import CommandRequest, RequestForm
from at.virtual.families.serial_modem import provisioning
from at.virtual.server.runner import ModemRunner
from tests.support.commands.running_agent import (
    PATIENCE_S,
    Served,
    agent_on,
    concern_of,
    kit_to_crash,
    profile_with,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
SM2 = "serial-modem-2.0.0"


def provisions(runner: ModemRunner) -> asyncio.Event:
    """Have the kit's application start its client; return what is set when that ends."""
    kit, ended = runner.modem.kit, asyncio.Event()
    notify = kit.notify

    def heard(line: str) -> None:
        notify(line)
        if line in {f"#XNRFPROV: {status}" for status in range(-6, 1)}:
            ended.set()

    kit.notify = heard  # type: ignore[method-assign]
    request = CommandRequest("#XNRFPROV", RequestForm.RUN)
    runner.have(lambda: provisioning.provision(kit, request) and None)
    return ended


@pytest.mark.parametrize("policy", ["as-found", "always", "never"])
async def test_the_radio_goes_off_and_on_and_stays_on(
    tmp_path: Path, cloud: Served, policy: str
) -> None:
    faults = ("provisioning-rounds=3",)
    environment = profile_with(tmp_path, cloud)
    config = tmp_path / "config.toml"
    config.write_text(f'{config.read_text()}\nkeep_online = "{policy}"\n')
    async with kit_to_crash(tmp_path, *faults, firmware=SM2) as kit, agent_on(environment) as agent:
        await agent.until("kit", "link", "well")
        ended = provisions(kit)
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
        assert kit.modem.kit.registered
        status = await agent.until_status(
            lambda _: any("no provisioning commands left" in line for line in agent.log)
        )
        assert concern_of(status, "kit", "link")["application"] == "v2.0.0"
        assert await agent.stop() == 0
        assert kit.modem.kit.registered


async def test_a_session_that_fails_is_a_finding_with_what_to_do(
    tmp_path: Path, cloud: Served
) -> None:
    def found(status: dict[str, Any]) -> bool:
        findings = concern_of(status, "kit", "link").get("findings") or []
        return any(
            "the kit is not claimed (#XNRFPROV: -2)" in one["what"]
            and "--registration claim" in one["try"]
            for one in findings
        )

    async with (
        kit_to_crash(tmp_path, "provisioning-failed=-2", firmware=SM2) as kit,
        agent_on(profile_with(tmp_path, cloud)) as agent,
    ):
        await agent.until("kit", "link", "well")
        provisions(kit)
        await agent.until_status(found)
        kit.modem.kit.faults.switch_off("provisioning-failed")
        provisions(kit)
        await agent.until_status(lambda status: not found(status))
