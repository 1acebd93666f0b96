"""Devices that agree with each other, and states with their deltas (clauses D2.4, D3.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.device_cloud.devices.registry import difference, merge
from tests.support.cloud.device_api import BLE, GATEWAY, GENERIC, Api, device_path
from tests.support.cloud.standin import StandIn


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
