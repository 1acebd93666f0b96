"""One kit from its first contact to a crash that is delivered, unplugged and killed meanwhile."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.commands.running_agent import (
    RunningAgent,
    Served,
    agent_on,
    concern_of,
    kit_to_crash,
    profile_with,
    serve,
    virtual_kit,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

UUID = "56495254-8f0b-c5c9-e65b-36ed0cf0f295"  # made from the virtual kit's IMEI


async def listed_events(cloud: Served) -> list[dict[str, Any]]:
    ready = cloud.ready
    path = f"/api/v0/organizations/{ready['organization']}/projects/{ready['project']}/events"
    headers = {"Authorization": f"Bearer {ready['credentials']['organization_auth_token']}"}
    async with httpx.AsyncClient(base_url=ready["urls"]["api"], trust_env=False) as client:
        answer = await client.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["data"])


def waiting(status: dict[str, Any]) -> int:
    return int(status["outbox"]["waiting"])


def delivered(status: dict[str, Any]) -> int:
    return int(status["outbox"]["counts"].get("delivered", 0))


async def crashed(agent: RunningAgent) -> None:
    await agent.until_status(lambda status: concern_of(status, "kit", "console").get("dumps") == 1)


@pytest.mark.contract("C5", "C7")
async def test_a_kit_is_met_located_and_its_crash_delivered(tmp_path: Path, cloud: Served):
    async with kit_to_crash(tmp_path) as kit, agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        kit.crash()
        await crashed(agent)
        status = await agent.until_status(
            lambda status: (
                delivered(status) >= 4
                and not waiting(status)
                and "position" in concern_of(status, "kit", "location")
            )
        )
        link = concern_of(status, "kit", "link")
        assert concern_of(status, "kit", "console")["crash"]["frame"].startswith("0x")
        assert link["device_id"] == UUID
        assert link["firmware"] == "mfw_nrf91x1_2.0.4"
        assert any("modem is off" in finding["what"] for finding in link["findings"])
        assert concern_of(status, "kit", "location")["position"]["with"] == "wifi"
        assert any(event["type"] == "trace" for event in await listed_events(cloud))
        assert await agent.stop() == 0


async def test_a_kit_that_is_denied_tells_the_cause_and_a_command_that_names_its_port(
    tmp_path: Path, cloud: Served
):
    async with kit_to_crash(tmp_path, "denied") as kit:
        kit.receive(b"AT+CFUN=1\r")
        async with agent_on(profile_with(tmp_path, cloud)) as agent:
            status = await agent.until_status(
                lambda now: bool(concern_of(now, "kit", "link").get("cause"))
            )
    cause = concern_of(status, "kit", "link")["cause"]
    assert cause["cause"] == "emm-15"
    assert f"--port {tmp_path / 'kit'}`" in cause["next"]


async def test_the_clock_of_a_kit_is_shown_as_every_time_is(tmp_path: Path, cloud: Served):
    async with kit_to_crash(tmp_path) as kit:
        kit.receive(b"AT+CFUN=1\r")
        async with agent_on(profile_with(tmp_path, cloud)) as agent:
            status = await agent.until_status(
                lambda now: bool(concern_of(now, "kit", "link").get("time"))
            )
    assert datetime.fromisoformat(concern_of(status, "kit", "link")["time"]).tzinfo is not None


async def test_what_the_kit_said_survives_the_cloud_and_the_agent_being_killed(
    tmp_path: Path, cloud: Served
):
    async with kit_to_crash(tmp_path) as kit:
        async with agent_on(profile_with(tmp_path, cloud)) as agent:
            await agent.until("kit", "link", "well")
            await cloud.kill()
            kit.crash()
            await crashed(agent)
            await agent.until(None, "outbox", "trouble")
            status = json.loads((await agent.run("status", "--json")).out)
            kept = waiting(status)
            assert kept >= 2
            agent.process.kill()
            await agent.process.wait()
        again = await serve("cloud", "serve", "--state", str(tmp_path / "cloud.state"))
        async with agent_on(profile_with(tmp_path, again)) as agent:
            status = await agent.until_status(lambda status: not waiting(status))
            assert delivered(status) >= kept
    assert any(event["type"] == "trace" for event in await listed_events(again))


async def test_a_kit_that_is_unplugged_is_told_once_and_found_again(tmp_path: Path, cloud: Served):
    kit = await virtual_kit(tmp_path)
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        await kit.end()
        await agent.until("kit", "link", "trouble")
        refused = await agent.run("modem", "at", "AT", "--port", str(tmp_path / "kit"))
        assert refused.code == 3
        assert "no link to the kit" in refused.err
        kit = await virtual_kit(tmp_path)
        await agent.until("kit", "link", "well")
        await agent.stop()
    about_link = [json.loads(line) for line in agent.log if '"link"' in line]
    told = [line["message"] for line in about_link if "lost" in line["message"]]
    assert len(told) == 1, agent.log
    assert any("works again" in line["message"] for line in about_link)


@pytest.mark.contract("D1.3", "D1.4")
async def test_a_kit_with_old_firmware_is_told_so_and_its_crashes_are_reported(
    tmp_path: Path, cloud: Served
):
    async with (
        kit_to_crash(tmp_path, "old-firmware") as kit,
        agent_on(profile_with(tmp_path, cloud)) as agent,
    ):
        await agent.until("kit", "location", "off")
        kit.crash()
        await crashed(agent)
        status = await agent.until_status(
            lambda status: delivered(status) >= 3 and not waiting(status)
        )
        (finding,) = [
            each
            for each in concern_of(status, "kit", "link")["findings"]
            if "1.2.8" in each["what"]
        ]
        assert "update the modem firmware" in finding["try"]
        assert "position" not in concern_of(status, "kit", "location")
