from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.call import Response
from agent.cloud import Device
from agent.cloud.device import read_time
from agent.cloud.device_reads import ListDevices
from agent.errors import BadAnswer


@pytest.mark.contract("D5.3")
@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ([], "no device"),
        ({}, "`id`"),
        ({"id": 5}, "`$.id`"),
        ({"id": "a", "tags": "b"}, "`$.tags`"),
        ({"id": "a", "$meta": {"updatedAt": "soon"}}, "is no time"),
    ],
)
def test_what_is_no_device_is_named(raw: Any, named: str) -> None:
    with pytest.raises(BadAnswer, match=named.replace("$", r"\$")):
        Device.of(raw)


@pytest.mark.contract("D2.1", "D4.1")
@pytest.mark.parametrize("wrong", [{"tags": "b"}, {"$meta": {"createdAt": "soon"}}])
def test_a_device_that_cannot_be_read_is_found_in_a_long_list(wrong: Any) -> None:
    items = [{"id": "nrf-1"}, {"id": "nrf-2", **wrong}, {"id": "nrf-3"}]
    answer = Response(200, {}, json.dumps({"items": items, "total": 3}).encode())
    with pytest.raises(BadAnswer, match="the device 'nrf-2' cannot be read: "):
        ListDevices().parse(answer)


@pytest.mark.contract("D2.3", "D5.1")
@pytest.mark.parametrize("version", ["1", "12.3", "a:b/c d", "W/0000000000000001"])
def test_a_version_is_kept_as_it_came_and_the_etag_precedes_it(version: str) -> None:
    raw = {"id": "a", "type": "Generic", "$meta": {"version": version}}
    assert Device.of(raw).version == version
    assert Device.of(raw, "another").version == "another"


@pytest.mark.contract("D2.3", "D5.3")
@pytest.mark.parametrize("offset", ["", "Z", "+00:00"])
def test_a_time_is_aware_and_without_an_offset_it_is_utc(offset: str) -> None:
    when = datetime(2025, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert read_time(f"2025-01-02T03:04:05.678{offset}") == when
    assert read_time("2025-01-02T05:04:05.678+02:00") == when


@pytest.mark.contract("D2.1")
@pytest.mark.parametrize("firmware", [None, {}, {"supports": None}, {"supports": []}])
def test_a_device_that_supports_nothing_says_so_in_any_way(firmware: Any) -> None:
    nothing = {"name": None, "type": None, "subType": None, "gatewayId": None, "tags": None}
    device = Device.of({"id": "a", **nothing, "state": None, "$meta": None, "firmware": firmware})
    assert (device.supports, device.tags, device.name, device.state) == ((), (), "a", {})


@pytest.mark.contract("D2.1", "D5.3")
def test_a_device_may_lack_nearly_everything_and_have_more() -> None:
    device = Device.of(
        {"id": "a", "type": "Toaster", "$meta": {"createdAt": "2025-01-02T03:04:05.678Z"}, "new": 1}
    )
    assert (device.name, device.type, device.tags, device.version) == ("a", "Toaster", (), None)
    assert device.raw["new"] == 1
    assert Device.of({"id": "a", "name": ""}).name == "", "it was given this name"
    assert device.created_at == read_time("2025-01-02T03:04:05.678+00:00")
    assert (device.state, device.reported, device.connected_ids, device.services) == (
        {},
        {},
        (),
        {},
    )
