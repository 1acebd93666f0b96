"""The devices that the stand-in has from the start (clause D3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.device_cloud.seed import fleet_device, fleet_id, fleet_index
from tests.support.cloud.device_api import (
    BLE,
    FREE,
    GATEWAY,
    GENERIC,
    LED,
    SERVICE,
    Api,
    device_path,
)


@pytest.mark.contract("D2.1")
async def test_only_a_device_of_its_own_says_whether_it_may_use_the_broker(api: Api) -> None:
    said = {one: (await api.get(device_path(one))).get("cloudMqttEnabled") for one in
            (GATEWAY, BLE, GENERIC, FREE)}  # fmt: skip
    assert said == {GATEWAY: False, BLE: None, GENERIC: False, FREE: False}


@pytest.mark.contract("D3.1", "D3.3", "D3.4", "D3.5")
async def test_the_state_of_a_ble_device_is_a_tree_whose_paths_agree_with_its_keys(
    api: Api,
) -> None:
    state = (await api.get(device_path(BLE)))["state"]
    empty_values = empty_descriptors = partial = whole = 0
    for service_key, service in state.items():
        assert service["uuid"] == service_key
        for key, characteristic in service["characteristics"].items():
            assert characteristic["uuid"] == key
            assert characteristic["path"] == f"{service_key}/{key}"
            assert all(0 <= byte <= 255 for byte in characteristic["value"])
            empty_values += not characteristic["value"]
            empty_descriptors += not characteristic["descriptors"]
            properties = characteristic["properties"]
            partial += all(properties.values())
            whole += len(properties) == 7
            for inner, descriptor in characteristic["descriptors"].items():
                assert descriptor["uuid"] == inner
                assert descriptor["path"] == f"{service_key}/{key}/{inner}"
    assert empty_values
    assert empty_descriptors
    assert partial
    assert whole
    assert state[SERVICE]["characteristics"][LED]["value"] == [1, 0]


@given(index=st.integers(0, 10**9 - 1))
def test_a_device_of_the_fleet_is_known_by_its_id(index: int) -> None:
    assert fleet_index(fleet_id(index)) == index
    assert fleet_device(index).id == fleet_id(index)


@pytest.mark.parametrize(
    "other", [GENERIC, GATEWAY, BLE, FREE, fleet_id(1) + "0", " " + fleet_id(1)]
)
def test_no_other_id_is_one_of_the_fleet(other: str) -> None:
    assert fleet_index(other) is None
