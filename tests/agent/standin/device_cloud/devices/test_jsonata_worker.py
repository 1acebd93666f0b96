"""Transforms of devices at the stand-in (clauses D4.2, D4.4, D4.6)."""

from __future__ import annotations

import pytest

from tests.support.cloud.device_api import BLE, FREE, GATEWAY, GENERIC, Api, device_path

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
