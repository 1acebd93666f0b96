"""Anchors, and the address of a place."""

from __future__ import annotations

import pytest
from standin import StandIn

NEAR = {"macAddress": "40:01:7a:00:00:e3", "signalStrength": -50}
FAR = {"macAddress": "40-01-7A-00-01-67", "signalStrength": -80}
WIFI = "/v1/organizations/acme/projects/kits/location/wifi"
GROUND_FIX = "/v1/organizations/acme/projects/kits/location/ground-fix"
ANCHORS = "/v1/location/anchors"


async def test_an_anchor_that_is_heard_is_the_answer(standin: StandIn) -> None:
    client, key = standin.client, standin.bearer("api_key")
    token = standin.bearer("organization_auth_token")
    scan = {"accessPoints": [NEAR, FAR]}
    assert "anchors" not in (await client.post(WIFI, json=scan, headers=token)).json()
    for point, lat in ((FAR, 1.5), (NEAR, 2.5)):
        wish = {"macAddress": point["macAddress"], "lat": lat, "lon": 3, "name": "the <shelf>!"}
        assert (await client.post(ANCHORS, json=wish, headers=key)).status_code == 202
    for path, body in ((WIFI, scan), (GROUND_FIX, {"wifi": scan})):
        found = (await client.post(path, json=body, headers=token)).json()
        assert (found["lat"], found["lon"], found["fulfilledWith"]) == (2.5, 3, "ANCHOR")
        assert found["anchors"] == [
            {"macAddress": "40:01:7a:00:00:e3", "name": "the shelf"},
            {"macAddress": "40:01:7a:00:01:67", "name": "the shelf"},
        ]
    unheard = {"accessPoints": [{**NEAR, "macAddress": f"40:01:7a:00:02:{n}0"} for n in (1, 2)]}
    assert "anchors" not in (await client.post(WIFI, json=unheard, headers=token)).json()


@pytest.mark.contract("D5.2", "D5.3")
async def test_an_anchor_is_fetched_changed_and_forgotten(standin: StandIn) -> None:
    client, key = standin.client, standin.bearer("api_key")
    wish = {"macAddress": FAR["macAddress"], "lat": 1, "lon": 2}
    assert (await client.post(ANCHORS, json=wish, headers=key)).status_code == 202
    assert (await client.post(ANCHORS, json=wish, headers=key)).status_code == 409
    path = f"{ANCHORS}/{FAR['macAddress']}"
    first = await client.get(path, headers=key)
    assert first.json()["macAddress"] == "40:01:7a:00:01:67"
    assert first.headers["etag"] == first.json()["$meta"]["version"]
    match = key | {"If-Match": first.headers["etag"]}
    assert (await client.patch(path, json={"lat": 5}, headers=match)).status_code == 202
    assert (await client.patch(path, json={"lat": 6}, headers=match)).status_code == 412
    changed = (await client.get(path, headers=key)).json()
    assert (changed["lat"], changed["lon"]) == (5, 2)
    for wrong in ({"lat": 91}, {"name": "x" * 33}, {"lon": "east"}):
        assert (await client.patch(path, json=wrong, headers=key)).status_code == 422
    assert (await client.get(ANCHORS, headers=key)).json()["items"] == [changed]
    assert (await client.delete(path, headers=match)).status_code == 412
    assert (await client.delete(path, headers=key)).status_code == 202
    assert (await client.get(path, headers=key)).status_code == 404


async def test_an_address_is_known_in_the_made_up_town_alone(standin: StandIn) -> None:
    client, token = standin.client, standin.bearer("service_token")
    path = "/v1/location/geo"
    found = await client.get(path, params={"lat": 63.42, "lon": 10.38}, headers=token)
    assert set(found.json()) == {"lat", "lon", "uncertainty", "formatted", "address"}
    assert {"country", "state"} <= set(found.json()["address"])
    away = await client.get(path, params={"lat": 0, "lon": 0}, headers=token)
    assert away.status_code == 404
    for wrong in ({}, {"lat": "x", "lon": 0}, {"lat": 91, "lon": 0}):
        assert (await client.get(path, params=wrong, headers=token)).status_code == 422
    key = standin.bearer("api_key")
    assert (await client.get(path, params={"lat": 0, "lon": 0}, headers=key)).status_code == 401
    standin.cloud.settings.legacy_location = False
    assert (await client.get(path, params={"lat": 0, "lon": 0}, headers=token)).status_code == 404
