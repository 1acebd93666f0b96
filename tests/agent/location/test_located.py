"""Where the kit truly is, where each call says it is: real terminals, a real socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.cloud.messages import SendMessage
from agent.config.profile import AccountSettings, KitSettings, LocationSettings, Profile
from agent.http import HttpClient
from agent.location.locator import (
    LocationMethod,
    LocationOptions,
    locator_for,
    moved,
    position_message,
)
from at.commands.functional_mode import SetFunctionalMode
from at.driver.modem import Modem, open_modem
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import api_key, organization_token, speaking_for_kit
from tests.support.location.moving_kit import moving_kit, path


def client_of(standin: StandIn) -> HttpClient:
    return speaking_for_kit(standin, organization_token(standin), api_key(standin))


def profile_of(standin: StandIn, companion: Path) -> Profile:
    return Profile(
        account=AccountSettings(organization=standin.organization, project=standin.project),
        location=LocationSettings(wifi="companion", good_enough_m=0.0),
        kit=KitSettings(companion_port=str(companion)),
    )


async def register(modem: Modem) -> None:
    await modem.subscribe("AT+CEREG=1")
    with modem.notices("+CEREG") as heard:
        await modem.send(SetFunctionalMode(1))
        while not (await anext(heard)).line.startswith("+CEREG: 1"):
            pass


@pytest.mark.contract("D8.1", "D8.2", "D8.5", "C5")
@pytest.mark.parametrize("confident", [False, True])
async def test_each_way_lands_within_its_uncertainty_all_along_the_path(
    standin: StandIn, tmp_path: Path, confident: bool
) -> None:
    options = LocationOptions(high_confidence=confident or None)
    found: dict[LocationMethod, list[float]] = {method: [] for method in LocationMethod}
    async with (
        moving_kit(tmp_path) as kit,
        open_modem(str(kit.port)) as modem,
        client_of(standin) as client,
    ):
        await register(modem)
        profile = profile_of(standin, kit.companion)
        locator = locator_for(profile, profile.kit, client, modem, options)
        for lat, lon in path():
            kit.go_to(lat, lon)
            for method in LocationMethod:
                fix = await locator.locate(method)
                assert fix.position is not None
                assert fix.position.uncertainty_m is not None
                off = fix.position.distance_m(lat, lon)
                assert off <= fix.position.uncertainty_m, (method, lat, lon, fix)
                found[method].append(fix.position.uncertainty_m)
    assert max(found[LocationMethod.WIFI]) < max(found[LocationMethod.CELL]) < 3000
    assert len(found[LocationMethod.GROUND_FIX]) == len(path()) >= 10


async def test_a_change_of_place_reaches_the_device_cloud_as_a_message(
    standin: StandIn, tmp_path: Path
) -> None:
    async with (
        moving_kit(tmp_path) as kit,
        open_modem(str(kit.port)) as modem,
        client_of(standin) as client,
    ):
        await register(modem)
        profile = profile_of(standin, kit.companion)
        locator = locator_for(profile, profile.kit, client, modem)
        reported: dict[str, Any] | None = None
        told = []
        headers = standin.bearer("api_key")
        devices = (await standin.client.get("/v1/devices", headers=headers)).json()["items"]
        device = next(one["id"] for one in devices if one["type"] != "BLE")
        for lat, lon in (path()[0], path()[0], path()[4]):
            kit.go_to(lat, lon)
            fix = await locator.locate(LocationMethod.WIFI)
            if moved(reported, fix):
                await client.send(SendMessage(device, position_message(fix)))
                reported = fix.to_json()
                told.append((lat, lon))
        assert told == [path()[0], path()[4]]
        kept = (await standin.client.get("/v1/messages", headers=headers)).json()["items"]
        assert [one["message"]["appId"] for one in kept] == ["GROUND_FIX", "GROUND_FIX"]
        assert kept[0]["message"]["data"]["lat"] == reported["lat"]  # type: ignore[index]
