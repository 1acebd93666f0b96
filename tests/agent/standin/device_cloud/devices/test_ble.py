"""BLE devices at the stand-in: values, descriptors, discovery (clauses D3, D6, D7)."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from agent.standin.device_cloud import seed
from agent.standin.device_cloud.tables import Characteristic
from tests.support.cloud.device_api import BLE, GATEWAY, LED, SERVICE, Api, device_path
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("D6", "D3.3")
@pytest.mark.parametrize("value", [[1, 0], [2, 0], [4, 0], [8, 0], [12, 0], [10, 0], []])
async def test_a_characteristic_is_written_and_read_back(api: Api, value: list[int]) -> None:
    before = await api.get(device_path(BLE))
    for name in (LED, quote(f"{SERVICE}/{LED}", safe="")):
        path = f"{device_path(BLE)}/characteristics/{name}"
        answer = await api.call("PUT", path, json=value)
        assert (answer.status_code, answer.content) == (202, b"")
        after = await api.get(device_path(BLE))
        assert after["state"][SERVICE]["characteristics"][LED]["value"] == value
        assert after["$meta"]["version"] != before["$meta"]["version"]
        assert await api.get(path) == value


@pytest.mark.contract("D6", "D5.2")
async def test_a_wrong_value_or_characteristic_is_refused(api: Api) -> None:
    path = f"{device_path(BLE)}/characteristics/{LED}"
    for wrong in ([256], [-1], [1.5], [True], ["1"], {}, "0A00", [0] * 513):
        assert (await api.call("PUT", path, json=wrong)).status_code == 422, wrong
    as_text = await api.call("PUT", path, content="[1]", headers={"Content-Type": "text/plain"})
    assert as_text.status_code == 415
    unknown = f"{device_path(BLE)}/characteristics/FFFF"
    assert (await api.call("PUT", unknown, json=[1])).status_code == 404
    stale = await api.call("PUT", path, json=[1], headers={"If-Match": "x"})
    assert stale.status_code == 412


@pytest.mark.contract("D3.4", "D6")
async def test_a_characteristic_that_allows_no_write_keeps_its_value(api: Api) -> None:
    path = f"{device_path(BLE)}/characteristics/{seed.BUTTON_CHARACTERISTIC}"
    before = await api.get(device_path(BLE))
    refused = await api.call("PUT", path, json=[1])
    assert (refused.status_code, refused.json()["code"]) == (409, 40900)
    assert "allow no write" in refused.json()["message"]
    assert await api.get(device_path(BLE)) == before


@pytest.mark.contract("D3.4")
@pytest.mark.parametrize("only", ["write", "writeWithoutResponse"])
def test_each_way_to_write_is_enough_and_a_missing_property_is_false(only: str) -> None:
    def characteristic(properties: dict[str, bool]) -> Characteristic:
        return Characteristic("1525", "1523/1525", [], properties, {})

    assert characteristic({only: True}).is_writable
    assert not characteristic({only: False, "notify": True}).is_writable
    assert not characteristic({}).is_writable


@pytest.mark.contract("D7", "D5.2")
async def test_discovery_takes_a_while_and_then_the_state_is_new(
    standin: StandIn, api: Api
) -> None:
    standin.clock.freeze()
    await api.call("PUT", f"{device_path(BLE)}/characteristics/{LED}", json=[12, 0])
    before = await api.get(device_path(BLE))
    stale = {"If-Match": "another"}
    refused = await api.call("POST", f"/devices/{GATEWAY}/discover/{BLE}", headers=stale)
    assert refused.status_code == 412
    answer = await api.call("POST", f"/devices/{GATEWAY}/discover/{BLE}")
    assert answer.status_code == 202
    standin.clock.advance(standin.cloud.settings.discover_s - 0.5)
    assert await api.get(device_path(BLE)) == before
    standin.clock.advance(0.5)
    after = await api.get(device_path(BLE))
    assert after["state"].keys() > before["state"].keys()
    assert after["state"][SERVICE]["characteristics"][LED]["value"] == [12, 0]
    (found,) = after["state"].keys() - before["state"].keys()
    assert after["state"][found]["uuid"] == found
    for uuid, characteristic in after["state"][found]["characteristics"].items():
        assert (characteristic["uuid"], characteristic["path"]) == (uuid, f"{found}/{uuid}")
    assert after["$meta"]["version"] != before["$meta"]["version"]
    turned = await api.call("POST", f"/devices/{BLE}/discover/{GATEWAY}")
    assert turned.status_code in {400, 404}


@pytest.mark.contract("D3.1")
async def test_a_descriptor_is_read_and_written(api: Api) -> None:
    service = (await api.get(device_path(BLE)))["state"][SERVICE]
    found = next(one for one in service["characteristics"].values() if one["descriptors"])
    (descriptor,) = found["descriptors"]
    path = f"{device_path(BLE)}/characteristics/{found['uuid']}/descriptors/{descriptor}"
    assert await api.get(path) == [0, 0]
    assert (await api.call("PUT", path, json=[1.0, 0])).status_code == 202
    assert await api.get(path) == [1, 0]
