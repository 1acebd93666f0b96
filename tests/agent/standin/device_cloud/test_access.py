"""Which credential opens which operation of the device cloud (clauses D1.5, D8.4, D10)."""

from __future__ import annotations

import pytest

from agent.standin.state import API_KEYS, ORGANIZATION_TOKENS
from tests.support.cloud.device_api import BLE, GENERIC, Api, device_path
from tests.support.cloud.standin import StandIn
from tests.support.location.location_scans import PLACES, scan_at, url


@pytest.mark.contract("D8.4", "D10.7", "O4.6", "D8.5")
async def test_each_wrong_way_in_has_its_status(standin: StandIn) -> None:
    scan = scan_at(PLACES[0])
    good = standin.credentials["organization_auth_token"]
    other = next(
        row.token
        for row in standin.cloud.table(ORGANIZATION_TOKENS).values()
        if row.organization != "acme"
    )
    cases = [
        (url("wifi"), f"Bearer {good}", 200),
        (url("wifi"), f"Basic {good}", 401),
        (url("wifi"), good, 401),
        (url("wifi"), f"Bearer {good[:-1]}", 401),
        (url("wifi"), f"Bearer {other}", 401),
        (url("wifi"), f"Bearer {standin.credentials['api_key']}", 401),
        (url("wifi"), f"Bearer {standin.credentials['service_token']}", 401),
        (url("wifi"), "", 401),
        (url("wifi", "nobody"), f"Bearer {good}", 401),
        (url("wifi", "acme", "nothing"), f"Bearer {good}", 401),
        (url("wifi", "umbrella"), f"Bearer {good}", 401),
        (url("wifi", "acme", "no-location"), f"Bearer {good}", 403),
        (url("wifis"), f"Bearer {good}", 404),
        ("/v1/organizations/acme/location/wifi", f"Bearer {good}", 404),
        ("/v1/organizations//projects/kits/location/wifi", f"Bearer {good}", 404),
        ("/v1/organizations/acme/projects//location/wifi", f"Bearer {good}", 404),
    ]
    for path, header, status in cases:
        headers = {"Authorization": header} if header else {}
        answer = await standin.client.post(path, headers=headers, json=scan)
        assert answer.status_code == status, (path, header[:12], answer.text)


@pytest.mark.contract("D10.1")
async def test_a_key_opens_its_own_team_only(standin: StandIn, api: Api) -> None:
    keys = standin.cloud.table(API_KEYS).values()
    other = next(row for row in keys if row.team != standin.team_id)
    assert other.email == standin.credentials["user_email"]
    header = {"Authorization": f"Bearer {other.key}"}
    seen = await standin.client.get("/v1/devices", headers=header)
    assert seen.json() == {"items": [], "total": 0}
    single = await standin.client.get("/v1" + device_path(BLE), headers=header)
    assert single.status_code == 404


@pytest.mark.contract("D10.10")
async def test_a_viewer_reads_and_does_not_change(standin: StandIn) -> None:
    viewer = next(row.key for row in standin.cloud.table(API_KEYS).values() if row.role == "viewer")
    header = {"Authorization": f"Bearer {viewer}"}
    seen = await standin.client.get("/v1/devices", headers=header)
    assert seen.status_code == 200
    path = f"/v1{device_path(GENERIC)}"
    for method, where, body in (
        ("PUT", f"{path}/name", "mine"),
        ("PATCH", f"{path}/state", {"desired": {"a": 1}}),
        ("POST", f"{path}/messages", {"message": {}}),
        ("DELETE", path, None),
    ):
        changed = await standin.client.request(method, where, headers=header, json=body)
        assert changed.status_code == 403, method
        assert "role" in changed.json()["message"]


@pytest.mark.contract("D1.5")
async def test_a_credential_of_the_wrong_kind_is_refused(standin: StandIn) -> None:
    for name in ("organization_auth_token", "service_token", "evaluation_token", "control_token"):
        answer = await standin.client.get("/v1/devices", headers=standin.bearer(name))
        assert (answer.status_code, answer.json()["code"]) == (401, 40100), name
    for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer  x"}):
        answer = await standin.client.get("/v1/devices", headers=headers)
        assert answer.status_code == 401
    # RFC 9110, 11.1: the scheme is told whatever its case.
    headers = {"Authorization": f"bearer {standin.credentials['api_key']}"}
    assert (await standin.client.get("/v1/devices", headers=headers)).status_code == 200
