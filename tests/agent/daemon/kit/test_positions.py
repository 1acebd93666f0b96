"""The position of a kit as the device cloud hears of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands.running_agent import agent_on, concern_of, virtual_kit
from tests.support.fota.update_offers import DEVICE, device_profile, onboard_device

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

NETWORK = "the kit to be on the network"


async def test_a_place_is_reported_as_a_device_message_and_once(standin: Any, tmp_path: Path):
    await onboard_device(standin)
    await virtual_kit(tmp_path)
    where = device_profile(tmp_path, standin)
    query = {"deviceId": DEVICE, "appId": "GROUND_FIX"}
    headers = standin.bearer("api_key")

    async def messages() -> list[dict[str, Any]]:
        found = await standin.client.get("/v1/messages", params=query, headers=headers)
        return [item["message"] for item in found.json()["items"]]

    async with agent_on(where) as agent:
        await agent.until("kit", "location", "well")
        (told,) = await messages()
        assert await agent.stop() == 0
    async with agent_on(where) as agent:
        await agent.until("kit", "location", "well")
        assert await messages() == [told], "the kit is where it was"
    assert {"lat", "lon", "uncertainty"} <= set(told["data"])


async def test_a_kit_that_is_off_is_told_as_off_and_found_once_it_is_on(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    await virtual_kit(tmp_path)
    where = device_profile(tmp_path, standin, '[profiles.bench.location]\nwifi = "none"\n')

    def waits(status: dict[str, Any]) -> bool:
        return bool(concern_of(status, "kit", "location")["trouble"] == NETWORK)

    async with agent_on(where) as agent:
        status = await agent.until_status(waits)
        assert status["headline"]["state"] == "attention"
        assert "the modem is off" in status["headline"]["says"]
        shown = await agent.run("status")
        assert shown.code == 0
        assert f"location     waiting for {NETWORK}" in shown.out
        assert (await agent.run("modem", "at", "AT+CFUN=1")).code == 0
        await agent.until("kit", "location", "well")  # an hour before its turn


@pytest.mark.parametrize("words", [("modem", "at", "AT"), ("hold", "kit", "--", "true")])
async def test_a_place_that_could_not_be_reported_is_once_a_person_has_mended_it(
    standin: Any, tmp_path: Path, words: tuple[str, ...]
):
    await virtual_kit(tmp_path)

    def unreported(status: dict[str, Any]) -> str:
        return str(concern_of(status, "kit", "location").get("unreported") or "")

    async with agent_on(device_profile(tmp_path, standin)) as agent:
        status = await agent.until_status(lambda status: "404" in unreported(status))
        way_out = concern_of(status, "kit", "location")["unreported_try"]
        assert "cellagent provision run --registration onboard" in way_out
        await onboard_device(standin)
        assert (await agent.run(*words)).code == 0
        await agent.until_status(lambda status: not unreported(status))
        assert await agent.stop() == 0
