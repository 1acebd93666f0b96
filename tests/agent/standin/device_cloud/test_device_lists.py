"""Lists of devices at the stand-in: filters, pages, transforms (D3, D4), over a socket."""

from __future__ import annotations

import asyncio

import pytest
from owned_devices import BLE, FREE, GATEWAY, GENERIC, Api, device_path
from standin import StandIn, running_standin


@pytest.fixture
def api(standin: StandIn) -> Api:
    return Api(standin)


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
