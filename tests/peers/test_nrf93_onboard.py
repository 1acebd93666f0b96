"""nrf93_onboard, released and unmodified: a virtual nRF93M1, the proxy, the stand-in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from at.driver.modem import open_modem
from tests.support.commands.nrfcloud_tools import INSTALLED, internet
from tests.support.modem.served_kit import ServedKit

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not INSTALLED, reason="nrfcloud-utils is not installed: run ./scripts/peers"
    ),
]


@pytest.mark.contract("D10.8")
async def test_it_onboards_a_virtual_nrf93m1(
    serve: Callable[..., ServedKit], tmp_path: Path
) -> None:
    kit = await asyncio.to_thread(serve, "--model", "nrf93m1")
    port = ("--port", str(kit.port))
    async with internet(tmp_path) as (standin, environment):
        tool = ("nrf93_onboard", *port, "--api-key", standin.credentials["api_key"])
        own = {name: environment[name] for name in ("HTTPS_PROXY", "REQUESTS_CA_BUNDLE")}
        # Its clock is not set: no token.
        await asyncio.to_thread(kit.run, *tool, code=5, environment=own)
        async with open_modem(str(kit.port)) as modem:
            assert (await modem.execute('AT+CCLK="2026/09/01,12:00:00+00"')).ok
        await asyncio.to_thread(kit.run, *tool, "--tags", "bench", environment=own)
        uuid = kit.saved()["uuid"]
        shown = await standin.client.get(f"/v1/devices/{uuid}", headers=standin.bearer("api_key"))
        device = shown.json()
        assert (device["subType"], device["tags"]) == ("nRF93M1", ["bench"])
        assert device["firmware"]["supports"] == ["MODEM"]
