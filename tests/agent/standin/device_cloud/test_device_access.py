"""Who may see and change devices at the stand-in: teams, keys, roles (D10)."""

from __future__ import annotations

import pytest
from owned_devices import BLE, GENERIC, Api, device_path
from standin import StandIn


@pytest.fixture
def api(standin: StandIn) -> Api:
    return Api(standin)


@pytest.mark.contract("D10.1")
async def test_a_key_opens_its_own_team_only(standin: StandIn, api: Api) -> None:
    keys = standin.cloud.table("api_keys").values()
    other = next(row for row in keys if row["team"] != standin.team_id)
    assert other["email"] == standin.credentials["user_email"]
    header = {"Authorization": f"Bearer {other['key']}"}
    seen = await standin.client.get("/v1/devices", headers=header)
    assert seen.json() == {"items": [], "total": 0}
    single = await standin.client.get("/v1" + device_path(BLE), headers=header)
    assert single.status_code == 404


@pytest.mark.contract("D10.1")
async def test_a_replaced_key_lives_for_sixty_minutes(standin: StandIn, api: Api) -> None:
    answer = await standin.client.post(
        "/control", headers=standin.bearer("control_token"), json={"rotate_api_key": True}
    )
    new = {"Authorization": f"Bearer {answer.json()['api_key']}"}

    async def statuses() -> tuple[int, int]:
        old = await standin.client.get("/v1/account", headers=api.header)
        fresh = await standin.client.get("/v1/account", headers=new)
        return old.status_code, fresh.status_code

    assert await statuses() == (200, 200)
    standin.clock.advance(59 * 60)
    assert await statuses() == (200, 200)
    standin.clock.advance(2 * 60)
    assert await statuses() == (401, 200)


@pytest.mark.contract("D10.10")
async def test_a_viewer_reads_and_does_not_change(standin: StandIn) -> None:
    viewer = next(
        row["key"] for row in standin.cloud.table("api_keys").values() if row["role"] == "viewer"
    )
    header = {"Authorization": f"Bearer {viewer}"}
    seen = await standin.client.get("/v1/devices", headers=header)
    assert seen.status_code == 200
    changed = await standin.client.put(
        f"/v1{device_path(GENERIC)}/name", headers=header, json="mine"
    )
    assert changed.status_code == 403
    assert "role" in changed.json()["message"]


@pytest.mark.contract("D1.5")
async def test_a_credential_of_the_wrong_kind_is_refused(standin: StandIn) -> None:
    for name in ("organization_auth_token", "service_token", "evaluation_token", "control_token"):
        answer = await standin.client.get("/v1/devices", headers=standin.bearer(name))
        assert (answer.status_code, answer.json()["code"]) == (401, 40100), name
    for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer  x"}):
        answer = await standin.client.get("/v1/devices", headers=headers)
        assert answer.status_code == 401
