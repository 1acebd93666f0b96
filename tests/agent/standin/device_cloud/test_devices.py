"""Devices and their messages at the stand-in, clause by clause, over a socket."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from owned_devices import BLE, FREE, GATEWAY, GENERIC, LED, SERVICE, TIME, Api, device_path
from standin import StandIn


@pytest.fixture
def api(standin: StandIn) -> Api:
    return Api(standin)


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


@pytest.mark.contract("D2.2")
@pytest.mark.parametrize(
    "device_id",
    [
        "AA:BB:CC:DD:EE:FF",
        "50363154-3930-4d96-80f9-13121cf35adc",
        "a name / with? odd #characters & ümläuts",
        "nrf-352656109999999",
        "x" * 128,
    ],
)
async def test_an_id_of_any_form_can_be_used(standin: StandIn, api: Api, device_id: str) -> None:
    made = await api.call(
        "PUT", "/association/" + quote(device_id, safe=""), content="ownership code"
    )
    assert made.status_code == 202
    assert (await api.get(device_path(device_id)))["id"] == device_id
    assert (await api.get("/devices", deviceIds=device_id))["items"][0]["id"] == device_id


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


async def test_messages_are_stored_under_their_topic_and_listed_newest_first(
    standin: StandIn, api: Api
) -> None:
    path = device_path(GENERIC) + "/messages"
    now = int(standin.clock.time() * 1000)
    own = f"d/{GENERIC}/d2c"
    for body in (
        {"message": {"appId": "TEMP", "messageType": "DATA", "data": 21, "ts": now - 60_000}},
        {"topic": own + "/bulk", "message": [{"appId": "RSRP", "data": 1}, {"appId": "TEMP"}]},
        {"topic": f"prod/{standin.team_id}/m/{own}/bin", "message": "AAEC"},
    ):
        assert (await api.call("POST", path, json=body)).status_code == 202
    everything = await api.get("/messages")
    assert everything["total"] == 4
    assert everything["items"][0]["message"] == "AAEC"
    temperatures = await api.get("/messages", appId="TEMP", deviceId=GENERIC, pageSort="asc")
    assert [item["message"].get("data") for item in temperatures["items"]] == [21, None]
    for wrong in (
        {},
        {"message": 5},
        {"topic": "d/other/d2c", "message": {}},
        {"topic": own + "/bulk", "message": {}},
        {"topic": own + "/bin", "message": "%"},
    ):
        assert (await api.call("POST", path, json=wrong)).status_code == 422, wrong
    standin.clock.advance(31 * 86400)
    assert (await api.get("/messages"))["items"] == []
