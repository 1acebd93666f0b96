"""Devices that agree with each other, and states with their deltas (clauses D2.4, D3.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.device_cloud.devices.registry import difference, merge
from agent.standin.device_cloud.seed import fleet_id
from agent.standin.state import API_KEYS
from tests.support.cloud.device_api import BLE, GATEWAY, GENERIC, Api, device_path
from tests.support.cloud.standin import StandIn, running_standin


@pytest.mark.contract("D2.4", "D3.2")
async def test_gateway_and_ble_device_always_agree(standin: StandIn, api: Api) -> None:
    async def connected() -> set[str]:
        return set((await api.get(device_path(GATEWAY)))["state"]["reported"]["statusConnections"])

    assert (await api.get(device_path(BLE)))["gatewayId"] == GATEWAY
    assert await connected() == {BLE}
    added = await api.call("PUT", f"/devices/{GATEWAY}/AA:AA:AA:AA:AA:01")
    assert added.status_code == 204
    assert await connected() == {BLE, "AA:AA:AA:AA:AA:01"}
    assert (await api.get(device_path("AA:AA:AA:AA:AA:01")))["gatewayId"] == GATEWAY
    patched = await api.call(
        "PATCH",
        device_path(GATEWAY) + "/state",
        json={"reported": {"statusConnections": {"nobody": {}}}},
    )
    assert patched.status_code == 202
    assert await connected() == {BLE, "AA:AA:AA:AA:AA:01"}
    assert (await api.call("DELETE", device_path(BLE))).status_code == 202
    assert await connected() == {"AA:AA:AA:AA:AA:01"}


async def test_a_device_whose_id_could_be_one_of_the_fleet_is_listed(api: Api) -> None:
    device = fleet_id(3)  # there is no fleet here
    associated = await api.call("PUT", f"/association/{device}", content="the code")
    assert associated.status_code == 202
    assert (await api.get("/devices", deviceIds=device))["total"] == 1


@pytest.mark.contract("D10.1")
async def test_a_device_of_the_fleet_that_went_to_another_team_is_listed_there(tmp_path) -> None:
    device = fleet_id(3)
    async with running_standin(tmp_path, devices=10) as standin:
        ours, theirs = Api(standin), Api(standin)
        keys = standin.cloud.table(API_KEYS).values()
        other = next(key.key for key in keys if key.team != standin.team_id)
        theirs.header = {"Authorization": f"Bearer {other}"}
        assert (await ours.call("DELETE", device_path(device))).status_code == 202
        associated = await theirs.call("PUT", f"/association/{device}", content="the code")
        assert associated.status_code == 202
        listed = [
            (await each.get("/devices", deviceIds=device))["total"] for each in (ours, theirs)
        ]
        assert listed == [0, 1]
        assert (await theirs.get("/devices", pageLimit=100))["total"] == 1


@given(
    desired=st.recursive(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 1, True, "x", [1]])),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner),
    ),
    reported=st.recursive(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 1, True, "x", [1]])),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner),
    ),
)
def test_what_is_wished_and_not_reported_is_the_delta(desired: dict, reported: dict) -> None:
    delta = difference(desired, reported)
    # A device that reports the delta has done what was wished: nothing is left of it.
    assert difference(desired, merge(reported, delta)) == {}
    assert difference(desired, desired) == {}
    assert merge(desired, delta) == desired


async def test_a_delta_goes_once_the_device_reports_what_was_wished(api: Api) -> None:
    path = device_path(GENERIC)
    wish = {"config": {"rate": 5, "on": True}}
    await api.call("PATCH", path + "/state", json={"desired": wish})
    await api.call("PATCH", path + "/state", json={"reported": {"config": {"rate": 5}}})
    assert (await api.get(path))["state"]["delta"] == {"config": {"on": True}}
    await api.call("PATCH", path + "/state", json={"reported": {"config": {"on": True}}})
    assert "delta" not in (await api.get(path))["state"]
