"""Versions of resources and `If-Match` (clauses D5.2, D9.1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.standin.device_cloud import seed
from agent.standin.device_cloud.resource import with_meta
from tests.support.cloud.device_api import GENERIC, Api, device_path
from tests.support.cloud.raw_requests import begin, finish
from tests.support.cloud.standin import StandIn

CHANGES = [
    ("PUT", "/name", '"new"'),
    ("PUT", "/tags", '["a"]'),
    ("PATCH", "/state", '{"reported":{"a":1}}'),
    ("DELETE", "", ""),
]


@pytest.mark.contract("D2.3", "D5.3")
def test_a_resource_was_updated_when_it_was_made_until_it_is_changed() -> None:
    made, changed = with_meta({"a": 1}, "then"), with_meta({"a": 1}, "then", "now")
    assert made["$meta"] == {"version": made.version, "createdAt": "then", "updatedAt": "then"}
    assert changed["$meta"] == {"version": changed.version, "createdAt": "then", "updatedAt": "now"}
    assert made.version != changed.version


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


ANCHOR = "/v1/location/anchors/40:01:7a:00:00:01"
BLE = f"/v1/devices/{seed.BLE}"
CHARACTERISTIC = f"{BLE}/characteristics/{seed.LED_CHARACTERISTIC}"
DEVICE = f"/v1/devices/{seed.GENERIC}"


@pytest.mark.contract("D5.2", "D6")
@pytest.mark.parametrize(
    ("method", "path", "shown", "body"),
    [
        ("PUT", f"{DEVICE}/name", DEVICE, "new"),
        ("PUT", f"{DEVICE}/tags", DEVICE, ["new"]),
        ("PATCH", f"{DEVICE}/state", DEVICE, {"reported": {"new": 1}}),
        ("PUT", CHARACTERISTIC, BLE, [8, 0]),
        ("PATCH", ANCHOR, ANCHOR, {"name": "new"}),
    ],
    ids=["name", "tags", "state", "characteristic", "anchor"],
)
async def test_of_two_changes_of_one_version_the_second_to_end_is_refused(
    standin: StandIn, method: str, path: str, shown: str, body: Any
) -> None:
    key = standin.bearer("api_key")
    anchor = {"macAddress": ANCHOR.rpartition("/")[2], "lat": 63.4, "lon": 10.4}
    await standin.client.post("/v1/location/anchors", json=anchor, headers=key)
    before = await standin.client.get(shown, headers=key)
    version, late = before.headers["etag"], json.dumps(body).encode()
    stream = await begin(
        standin,
        *(method, path, late),
        f"Authorization: {key['Authorization']}",
        f"If-Match: {version}",
        "Content-Type: application/json",
    )
    meanwhile = {"name": "first"} if path == ANCHOR else "first"
    other = path if path == ANCHOR else f"{shown}/name"
    answer = await standin.client.request(
        method if path == ANCHOR else "PUT", other, json=meanwhile, headers=key
    )
    assert answer.status_code == 202, answer.text
    assert await finish(stream, late) == 412
    after = (await standin.client.get(shown, headers=key)).json()
    assert after["name"] == "first"
