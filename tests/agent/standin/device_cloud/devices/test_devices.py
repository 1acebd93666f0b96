"""Devices at the stand-in: lists, reads, changes (clauses D2, D4, D9.1)."""

from __future__ import annotations

import pytest

from tests.support.cloud.device_api import BLE, FREE, GATEWAY, GENERIC, TIME, Api, device_path
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("D9.1", "D2.3")
async def test_a_name_is_changed_in_both_forms_of_the_body(standin: StandIn, api: Api) -> None:
    for body in ("first", ["second"]):
        before = (await api.get(device_path(GENERIC)))["$meta"]
        standin.clock.advance(1)
        answer = await api.call("PUT", device_path(GENERIC) + "/name", json=body)
        assert (answer.status_code, answer.content) == (202, b"")
        after = await api.get(device_path(GENERIC))
        assert after["name"] == (body if isinstance(body, str) else body[0])
        assert after["$meta"]["version"] != before["version"]
        assert after["$meta"]["updatedAt"] > before["updatedAt"]
        assert after["$meta"]["createdAt"] == before["createdAt"]
    for wrong in ("", "x" * 129, "two\nlines", 5, [], ["a", "b"], {}):
        refused = await api.call("PUT", device_path(GENERIC) + "/name", json=wrong)
        assert refused.status_code == 422, wrong


@pytest.mark.contract("D2.3", "D3.2")
async def test_a_state_is_merged_deeply_and_null_takes_a_key_away(api: Api) -> None:
    path = device_path(GENERIC)

    async def patch(change: object) -> int:
        return (await api.call("PATCH", path + "/state", json=change)).status_code

    assert await patch({"reported": {"a": {"b": 1, "c": 2}}, "desired": {"x": [1]}}) == 202
    assert await patch({"reported": {"a": {"b": None, "d": {"e": 3}}}}) == 202
    state = (await api.get(path))["state"]
    assert state["reported"]["a"] == {"c": 2, "d": {"e": 3}}
    assert state["desired"] == {"x": [1]}
    assert state["delta"] == {"x": [1]}
    times = state["metadata"]["reported"]["a"]
    assert times.keys() == {"c", "d"}
    assert times["d"]["e"].keys() == times["c"].keys() == {"timestamp"}
    assert await patch({"reported": {"device": {"serviceInfo": {"fota_v2": ["APP"]}}}}) == 202
    assert (await api.get(path))["firmware"]["supports"] == ["APP"]
    assert await patch({"desired": None, "reported": {}}) == 202
    state = (await api.get(path))["state"]
    assert "desired" not in state
    assert "desired" not in state["metadata"]
    assert state["reported"]["a"] == {"c": 2, "d": {"e": 3}}
    for wrong in ({}, [], {"state": {}}, {"reported": 3}, {"reported": {}, "x": {}}):
        assert await patch(wrong) == 422, wrong
    deep: dict = {}
    for _ in range(100):
        deep = {"a": deep}
    assert await patch({"reported": deep}) == 400


@pytest.mark.contract("D4.1")
async def test_a_list_is_items_and_total_with_state_on_request(api: Api) -> None:
    plain = await api.get("/devices")
    assert plain["total"] == len(plain["items"]) == 4
    assert all("state" not in device for device in plain["items"])
    whole = await api.get("/devices", includeState="true")
    assert all("state" in device for device in whole["items"])
    assert all("metadata" not in device["state"] for device in whole["items"])


@pytest.mark.contract("D4.3")
async def test_device_types_filter_without_nulls(api: Api) -> None:
    found = await api.get("/devices", deviceTypes="BLE", transform="id")
    assert found["items"] == [BLE]
    both = await api.get("/devices", deviceTypes=["BLE", "Gateway"])
    assert {device["type"] for device in both["items"]} == {"BLE", "Gateway"}
    joined = await api.get("/devices", deviceTypes="BLE,Gateway")
    assert joined == both


@pytest.mark.contract("D4.2", "D4.4", "D4.6")
async def test_a_transform_of_the_list_reaches_into_the_state_of_each_device(api: Api) -> None:
    nested = "state.*.characteristics.*.uuid"
    listed = await api.get("/devices", transform=nested)
    each = [await api.get(device_path(one), transform=nested) for one in (GATEWAY, BLE)]
    assert listed["items"][:2] == each
    assert each[0] is None
    assert len(each[1]) > 1


@pytest.mark.contract("D4.3", "D4.6")
async def test_devices_are_chosen_by_what_firmware_they_can_be_given(api: Api) -> None:
    for wanted in ("APP", "MODEM", "APP,BOOT"):
        found = await api.get("/devices", firmwareSupport=wanted, transform="id")
        assert found["items"] == [GENERIC]
    assert (await api.get("/devices", firmwareSupport="BOOT"))["items"] == []


@pytest.mark.contract("D4.5")
async def test_a_transform_has_no_effect_elsewhere(api: Api) -> None:
    assert (await api.get("/account", transform="role")).keys() > {"role", "team"}


@pytest.mark.contract("D5.1")
async def test_a_transformed_device_still_carries_its_version_as_etag(api: Api) -> None:
    plain = await api.call("GET", device_path(BLE))
    shaped = await api.call("GET", device_path(BLE), params={"transform": "type = 'X' ? id"})
    assert shaped.json() is None
    assert shaped.headers["etag"] == plain.headers["etag"]


@pytest.mark.contract("D2.1", "D2.2", "D2.3", "D5.1")
@pytest.mark.parametrize("device_id", [GATEWAY, BLE, GENERIC, FREE])
async def test_a_device_has_every_field_and_its_version_is_its_etag(
    standin: StandIn, api: Api, device_id: str
) -> None:
    answer = await api.call("GET", device_path(device_id))
    device = answer.json()
    assert device["id"] == device_id
    assert device["name"]
    assert device["type"] in {"BLE", "Gateway", "Generic"}
    assert device["tenantId"] == standin.team_id
    assert isinstance(device["tags"], list)
    assert isinstance(device["state"], dict)
    assert isinstance(device["firmware"]["supports"], list)
    assert answer.headers["etag"] == device["$meta"]["version"]
    assert TIME.fullmatch(device["$meta"]["createdAt"])
    assert TIME.fullmatch(device["$meta"]["updatedAt"])
    assert ("gatewayId" in device) is ("subType" in device) is (device["type"] == "BLE")
    assert device.get("cloudMqttEnabled") is (None if device["type"] == "BLE" else False)
    if device_id == GENERIC:
        assert device["firmware"] == {"supports": ["APP", "MODEM"], "modem": "mfw_nrf91x1_2.0.2"}
