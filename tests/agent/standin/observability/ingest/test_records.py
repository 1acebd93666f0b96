"""Pushed events, traces and versions become the records that are listed."""

from __future__ import annotations

import pytest

from agent.standin.observability.ingest.records import reason_name
from tests.support.cloud.observability import a_trace, an_event, push, with_token
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("O3.4", "O5.2")
async def test_pushed_events_are_listed_with_what_they_said(standin: StandIn) -> None:
    event = an_event(
        captured_date="2026-11-20T03:04:05Z",
        user_info={"k": "v"},
        event_info={"metrics": {"battery_pct": 77, "t": 1.5, "location": "41.8N", "unset": None}},
    )
    standin.clock.set(1_795_250_000)
    answer = await push(standin, [event])
    assert answer.status_code == 202
    assert answer.json() == {}
    (listed,) = await with_token(standin).data("~/events")
    assert listed["type"] == "heartbeat"
    assert listed["event_info"] == event["event_info"]
    assert listed["user_info"] == {"k": "v"}
    assert listed["device"]["device_serial"] == "kit-1"
    assert listed["device"]["hardware_version"] == "nrf9161dk"
    assert listed["release"]["version"] == "2.4.1"
    assert listed["captured_date"] == "2026-11-20T03:04:05.000000+00:00"
    assert await with_token(standin).data(f"~/events/{listed['id']}") == listed


async def test_a_captured_date_out_of_bounds_is_ignored_and_told(standin: StandIn) -> None:
    assert (
        await push(standin, [an_event(captured_date="2001-01-01T00:00:00Z")])
    ).status_code == 202
    (event,) = await with_token(standin).data("~/events")
    assert event["captured_date"] == event["received_date"]
    lines = (await with_token(standin)("GET", "~/processing-log")).json()["data"]
    assert [line["level"] for line in lines] == ["warning"]


@pytest.mark.contract("O1.2", "O5.2")
async def test_a_trace_becomes_a_trace_and_counts_to_its_issue(standin: StandIn) -> None:
    for serial in ("kit-1", "kit-2", "kit-1"):
        assert (await push(standin, [a_trace(serial)])).status_code == 202
    caller = with_token(standin)
    (issue,) = await caller.data("~/issues")
    assert (issue["trace_count"], issue["device_count"]) == (3, 2)
    assert issue["title"].startswith("Assert")
    traces = await caller.data("~/traces", issue=issue["id"])
    assert [one["reason_code"] for one in traces] == [0x8001] * 3
    assert traces[0]["trace_info"]["pc"] == 226_689
    assert issue["last_trace"] == traces[0]["id"]


@pytest.mark.contract("O1.2")
async def test_a_new_version_on_a_device_is_an_install(standin: StandIn) -> None:
    for version in ("1.0.0", "1.0.0", "1.1.0"):
        await push(standin, [an_event(software_version=version)])
    newest, first = await with_token(standin).data("~/installs", device="kit-1")
    assert first["release_from"] is None
    assert newest["release_from"]["version"] == "1.0.0"
    assert newest["release_to"]["version"] == "1.1.0"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0x9400, "Hard Fault"),
        (0x94FF, "Hard Fault"),
        (0x8007, "Clock Failure"),
        (0x80FF, "Unknown Error"),
        (0x7777, "Reason 0x7777"),
        ("OwnReason", "OwnReason"),
        ("x" * 300, "x" * 200),
        ("", "Unknown"),
        (None, "Unknown"),
    ],
)
def test_a_reason_has_a_name(code: object, name: str) -> None:
    assert reason_name(code) == name
