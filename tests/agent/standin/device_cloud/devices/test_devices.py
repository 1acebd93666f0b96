"""Changes of devices at the stand-in: versions, names, values, states (D5 to D7, D9.1)."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from owned_devices import BLE, GATEWAY, GENERIC, LED, SERVICE, Api, device_path
from standin import StandIn

from agent.standin.device_cloud.devices.registry import difference, merge


@pytest.fixture
def api(standin: StandIn) -> Api:
    return Api(standin)


CHANGES = [
    ("PUT", "/name", '"new"'),
    ("PUT", "/tags", '["a"]'),
    ("PATCH", "/state", '{"reported":{"a":1}}'),
    ("DELETE", "", ""),
]


@pytest.mark.contract("D5.2", "D9.1")
@pytest.mark.parametrize(("method", "suffix", "body"), CHANGES, ids=[c[1] or "/" for c in CHANGES])
async def test_every_change_checks_if_match(api: Api, method: str, suffix: str, body: str) -> None:
    path = device_path(GENERIC)
    version = (await api.call("GET", path)).headers["etag"]

    async def change(**headers: str) -> int:
        sent = {"Content-Type": "application/json", **headers}
        answer = await api.call(method, path + suffix, content=body, headers=sent)
        if answer.status_code == 412:
            assert "PreconditionFailedError" in answer.text
        return answer.status_code

    assert await change(**{"If-Match": "another"}) == 412
    assert (await api.call("GET", path)).headers["etag"] == version
    assert await change(**{"If-Match": f'W/"{version}"'}) == 202
    if method != "DELETE":
        assert (await api.call("GET", path)).headers["etag"] != version
        assert await change(**{"If-Match": version}) == 412
        assert await change(**{"If-Match": "*"}) == 202
        assert await change() == 202


@pytest.mark.contract("D5.2")
async def test_404_comes_before_412_and_412_before_validation(api: Api) -> None:
    wrong = {"If-Match": "x", "Content-Type": "application/json"}
    nobody = await api.call("PUT", "/devices/nobody/name", content="{", headers=wrong)
    assert (nobody.status_code, nobody.json()["code"]) == (404, 40410)
    stale = await api.call("PUT", device_path(GENERIC) + "/name", content="{", headers=wrong)
    assert stale.status_code == 412


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


@pytest.mark.contract("D7")
async def test_discovery_takes_a_while_and_then_the_state_is_new(
    standin: StandIn, api: Api
) -> None:
    standin.clock.freeze()
    await api.call("PUT", f"{device_path(BLE)}/characteristics/{LED}", json=[12, 0])
    before = await api.get(device_path(BLE))
    answer = await api.call("POST", f"/devices/{GATEWAY}/discover/{BLE}")
    assert answer.status_code == 202
    standin.clock.advance(2)
    assert await api.get(device_path(BLE)) == before
    standin.clock.advance(2)
    after = await api.get(device_path(BLE))
    assert after["state"].keys() > before["state"].keys()
    assert after["state"][SERVICE]["characteristics"][LED]["value"] == [12, 0]
    assert after["$meta"]["version"] != before["$meta"]["version"]
    turned = await api.call("POST", f"/devices/{BLE}/discover/{GATEWAY}")
    assert turned.status_code in {400, 404}


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
    assert await patch({"reported": {"device": {"serviceInfo": {"fota_v2": ["APP"]}}}}) == 202
    assert (await api.get(path))["firmware"]["supports"] == ["APP"]
    for wrong in ({}, [], {"state": {}}, {"reported": 3}, {"reported": {}, "x": {}}):
        assert await patch(wrong) == 422, wrong
    deep: dict = {}
    for _ in range(100):
        deep = {"a": deep}
    assert await patch({"reported": deep}) == 400


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


@pytest.mark.contract("D3.1")
async def test_a_descriptor_is_read_and_written(api: Api) -> None:
    service = (await api.get(device_path(BLE)))["state"][SERVICE]
    found = next(one for one in service["characteristics"].values() if one["descriptors"])
    (descriptor,) = found["descriptors"]
    path = f"{device_path(BLE)}/characteristics/{found['uuid']}/descriptors/{descriptor}"
    assert await api.get(path) == [0, 0]
    assert (await api.call("PUT", path, json=[1.0, 0])).status_code == 202
    assert await api.get(path) == [1, 0]
