"""The position of a kit as the device cloud hears of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from running_agent import agent_on, virtual_kit
from update_offers import DEVICE, device_profile, onboard_device

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


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
