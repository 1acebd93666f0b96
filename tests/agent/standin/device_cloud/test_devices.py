"""Devices at the stand-in, clause by clause: D2 to D7 and D9.1, over a socket."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standin import StandIn, running_standin

from agent.standin.device_cloud.shadow import difference, merge

GATEWAY = "nrf-352656109000001"
BLE = "DE:AD:BE:EF:00:01"
GENERIC = "nrf-352656109000002"
FREE = "greenhouse north"
SERVICE = "00001523-1212-EFDE-1523-785FEABCD123"
LED = "00001525-1212-EFDE-1523-785FEABCD123"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Api:
    """The device cloud as its owner sees it."""

    def __init__(self, standin: StandIn, credential: str = "api_key") -> None:
        self.client = standin.client
        self.header = standin.bearer(credential)

    async def call(self, method: str, path: str, *, headers: dict | None = None, **given):
        return await self.client.request(
            method, "/v1" + path, headers=self.header | (headers or {}), **given
        )

    async def get(self, path: str, **query):
        answer = await self.call("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def api(standin: StandIn) -> Api:
    return Api(standin)


def device_path(device_id: str) -> str:
    return "/devices/" + quote(device_id, safe="")


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


async def walk(api: Api, **query) -> list:
    items, token = [], None
    while True:
        page = await api.get("/devices", **query, **({"pageNextToken": token} if token else {}))
        assert page["total"] <= int(query.get("pageLimit", 100))
        items += page["items"]
        token = page.get("pageNextToken")
        if not token:
            return items


@pytest.mark.contract("D4.1", "D4.2")
async def test_a_fleet_is_walked_page_by_page_each_device_once(tmp_path) -> None:
    async with running_standin(tmp_path, devices=1000) as standin:
        api = Api(standin)
        ids = [device["id"] for device in await walk(api, pageLimit=100)]
        assert len(ids) == len(set(ids)) == 1004
        assert await walk(api, pageLimit=100, transform="id") == ids
        assert await walk(api, pageLimit=100, pageSort="desc", transform="id") == ids[::-1]
        changed = ids[-1]
        renamed = await api.call("PUT", device_path(changed) + "/name", json="mine")
        assert renamed.status_code == 202
        gone = await api.call("DELETE", device_path(ids[-2]))
        assert gone.status_code == 202
        left = await walk(api, pageLimit=77)
        assert [device["id"] for device in left] == [*ids[:-2], changed]
        assert left[-1]["name"] == "mine"
        tagged = await api.get("/devices", tags="fleet", pageLimit=5)
        assert len(tagged["items"]) == 5


@pytest.mark.parametrize(
    "query",
    [
        {"pageLimit": "0"},
        {"pageLimit": "101"},
        {"pageLimit": "-1"},
        {"pageLimit": "x"},
        {"pageNextToken": "%%%"},
        {"pageNextToken": "AAAA"},
        {"pageSort": "up"},
        {"includeState": "maybe"},
    ],
)
async def test_wrong_paging_is_refused(api: Api, query: dict[str, str]) -> None:
    answer = await api.call("GET", "/devices", params=query)
    assert answer.status_code in {400, 422}


TRANSFORMS = [
    ("id", [GATEWAY, BLE, GENERIC, FREE]),
    ("type = 'BLE' ? id", [None, BLE, None, None]),
    ('{"id": id, "kind": type}', None),
    ("{'id': id, 'kind': type}", None),
    ("$map(tags, function($t) { $uppercase($t) })", [None, None, "DEMO", None]),
    ("$keys(state.reported)", None),
    ("state.*.characteristics.*.value[0]", None),
    (
        'type = "BLE" ? "radio" : type = "Gateway" ? "hub" : "other"',
        ["hub", "radio"] + ["other"] * 2,
    ),
    ("nothing.at.all", [None] * 4),
]


@pytest.mark.contract("D4.2", "D4.4", "D4.6")
@pytest.mark.parametrize(("expression", "expected"), TRANSFORMS, ids=[t[0] for t in TRANSFORMS])
async def test_a_transform_is_applied_to_each_device_and_the_envelope_stays(
    api: Api, expression: str, expected: list | None
) -> None:
    plain = await api.get("/devices")
    shaped = await api.get("/devices", transform=expression)
    assert shaped.keys() == plain.keys()
    assert shaped["total"] == plain["total"]
    assert len(shaped["items"]) == len(plain["items"])
    if expected is not None:
        assert shaped["items"] == expected


@pytest.mark.contract("D4.6")
async def test_a_constructor_keeps_the_names_and_the_order_of_its_fields(api: Api) -> None:
    shaped = await api.get("/devices", transform='{"zebra": id, "ant": type}')
    assert [list(item) for item in shaped["items"]] == [["zebra", "ant"]] * 4


@pytest.mark.contract("D4.4")
@pytest.mark.parametrize(
    "expression",
    [")(", "((((((", "{", "switch (type) { case 1: 2 }", "$unknown(1)", "1/0", "", "x" * 5000],
)
async def test_a_bad_transform_is_a_clear_400(api: Api, expression: str) -> None:
    for path in ("/devices", device_path(BLE)):
        answer = await api.call("GET", path, params={"transform": expression})
        assert answer.status_code == 400, answer.text
        assert "transform" in answer.json()["message"]


@pytest.mark.contract("D4.4")
@pytest.mark.parametrize(
    "expression",
    [
        "$sum([0..9999999])",
        '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /(a+)+$/)',
        '$pad("x", 500000000)',
        "(" * 1500 + "1" + ")" * 1500,
    ],
    ids=["long sum", "regex", "huge", "deep"],
)
async def test_an_expression_that_never_ends_is_ended_and_others_are_answered_meanwhile(
    api: Api, expression: str
) -> None:
    endless = asyncio.create_task(
        api.call("GET", device_path(BLE), params={"transform": expression})
    )
    for _ in range(5):
        assert (await api.call("GET", device_path(BLE))).status_code == 200
    assert (await endless).status_code in {200, 400}
    assert await api.get(device_path(BLE), transform="id") == BLE


@pytest.mark.contract("D4.5")
async def test_a_transform_has_no_effect_elsewhere(api: Api) -> None:
    assert (await api.get("/account", transform="role")).keys() > {"role", "team"}


@pytest.mark.contract("D5.1")
async def test_a_transformed_device_still_carries_its_version_as_etag(api: Api) -> None:
    plain = await api.call("GET", device_path(BLE))
    shaped = await api.call("GET", device_path(BLE), params={"transform": "type = 'X' ? id"})
    assert shaped.json() is None
    assert shaped.headers["etag"] == plain.headers["etag"]


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
