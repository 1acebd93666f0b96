"""Events as JSON are held to a schema."""

from __future__ import annotations

import pytest

from tests.support.cloud.observability import an_event, error_of, push, with_project_key, with_token
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("O3.4")
async def test_a_lone_event_and_the_older_version_field_are_taken(standin: StandIn) -> None:
    older = an_event(release_version="1.0.0")
    del older["software_type"], older["software_version"]
    assert (await push(standin, older)).status_code == 202
    (device,) = await with_token(standin).data("~/devices")
    assert device["last_seen_release"]["version"] == "1.0.0"


@pytest.mark.contract("O3.4")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": "party"}, "type"),
        ({"device_serial": "a b"}, "device_serial"),
        ({"device_serial": 7}, "device_serial"),
        ({"hardware_version": "r/1"}, "hardware_version"),
        ({"hardware_version": None}, "hardware_version"),
        ({"captured_date": "yesterday"}, "captured_date"),
        ({"event_info": {"metrics": {"x": {}}}}, "event_info"),
        ({"event_info": {"metrics": {"": 1}}}, "event_info"),
        ({"event_info": {"metrics": {"x": "y" * 1001}}}, "event_info"),
        ({"event_info": 5}, "event_info"),
        ({"type": "trace", "event_info": {"reason": "x", "pc": 1}}, "event_info"),
        ({"type": "trace", "event_info": {"pc": 1}}, "event_info"),
    ],
    ids=str,
)
async def test_a_bad_event_is_named_by_index_and_field_and_spoils_the_batch(
    standin: StandIn, change: dict, field: str
) -> None:
    answer = await push(standin, [an_event(), an_event() | change])
    error = error_of(answer)
    assert (error["http_code"], error["code"], error["type"]) == (400, 1000, "InvalidUsageError")
    assert set(error["message"]) == {"1"}
    assert field in error["message"]["1"]
    assert await with_token(standin).data("~/events") == []


@pytest.mark.contract("O3.4")
@pytest.mark.parametrize("missing", ["type", "device_serial", "hardware_version", "sdk_version",
                                     "event_info", "software_version"])  # fmt: skip
async def test_what_an_event_needs_is_asked_for(standin: StandIn, missing: str) -> None:
    event = an_event()
    del event[missing]
    assert error_of(await push(standin, [event]))["http_code"] == 400


@pytest.mark.contract("O3.4")
async def test_an_event_is_held_against_the_form_that_its_type_names(standin: StandIn) -> None:
    for kind, others, needed in (
        ("trace", {"metrics": {"a": 1}}, ["reason", "pc"]),
        ("heartbeat", {"reason": 1, "pc": 2}, ["metrics"]),
    ):
        refused = await push(standin, [an_event(type=kind, event_info=others)])
        missing = {name: ["Missing data for required field."] for name in needed}
        assert error_of(refused)["message"] == {"0": {"event_info": missing}}


@pytest.mark.contract("O3.4")
async def test_bodies_that_are_no_events_are_refused(standin: StandIn) -> None:
    for body in ([], {}, 5, "x", [[]]):
        assert error_of(await push(standin, body))["http_code"] == 400
    large = await push(standin, [an_event(user_info={"x": "y" * 2_000_000})])
    assert error_of(large)["http_code"] == 413
    plain = await with_project_key(standin)(
        "POST", "/api/v0/events", content=b"[]", headers={"Content-Type": "text/plain"}
    )
    assert error_of(plain)["http_code"] == 415
    untyped = await with_project_key(standin)("POST", "/api/v0/events", content=b"[]")
    told = "the body is to be application/json, not of no type at all"
    assert error_of(untyped)["message"] == told
