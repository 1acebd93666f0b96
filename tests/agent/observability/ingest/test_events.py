"""Events: made, checked before they are kept, and pushed as the service wants them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.call import Response
from agent.errors import BadAnswer, UsageError
from agent.observability.ingest.chunks import PushChunks
from agent.observability.ingest.device_identity import DeviceIdentity
from agent.observability.ingest.events import PushEvents, check_event, heartbeat, trace
from agent.observability.ingest.uploads import CommitUpload, FileKind, UploadCoredump

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KIT = DeviceIdentity("kit-1", "nrf9161dk", "main", "1.0.0+abc")


def an_event(**changes: object) -> dict[str, object]:
    event: dict[str, object] = {
        "type": "heartbeat",
        "device_serial": "kit-1",
        "hardware_version": "nrf9161dk",
        "software_type": "main",
        "software_version": "1.0.0",
        "sdk_version": "0.5.0",
        "event_info": {"metrics": {"battery_pct": 77}},
    }
    event.update(changes)
    return {name: value for name, value in event.items() if value is not ...}


def metrics(**values: object) -> dict[str, object]:
    return an_event(event_info={"metrics": values})


@pytest.mark.contract("O3.4")
def test_a_heartbeat_says_who_when_and_what():
    captured = NOW - timedelta(hours=1, milliseconds=250)
    assert json.loads(heartbeat(KIT, {"battery_pct": 77, "cell": "a"}, NOW)) == {
        "type": "heartbeat",
        "device_serial": "kit-1",
        "hardware_version": "nrf9161dk",
        "software_type": "main",
        "software_version": "1.0.0+abc",
        "sdk_version": "0.5.0",
        "captured_date": "2026-01-02T03:04:05Z",
        "event_info": {"metrics": {"battery_pct": 77, "cell": "a"}},
    }
    event = json.loads(trace(KIT, 0x8002, captured, pc=4, user_info={"why": "watchdog"}))
    assert event["event_info"] == {"reason": 0x8002, "pc": 4}
    assert event["captured_date"] == "2026-01-02T02:04:04.750Z"
    assert event["user_info"] == {"why": "watchdog"}


@pytest.mark.contract("O3.4")
@pytest.mark.parametrize(
    ("event", "field"),
    [
        pytest.param([], "an event is", id="a list"),
        pytest.param(an_event(type="install"), "type", id="type"),
        pytest.param(an_event(type=...), "type", id="no type"),
        pytest.param(an_event(device_serial="a b"), "device_serial", id="a space"),
        pytest.param(an_event(device_serial="x" * 129), "device_serial", id="too long"),
        pytest.param(an_event(device_serial="kit\n"), "device_serial", id="a line end"),
        pytest.param(an_event(device_serial="kit.1"), "device_serial", id="a dot in a slug"),
        pytest.param(an_event(hardware_version=5), "hardware_version", id="a number"),
        pytest.param(an_event(software_type=...), "software_type", id="half a pair"),
        pytest.param(an_event(sdk_version=...), "sdk_version", id="no sdk"),
        pytest.param(an_event(event_info=[]), "event_info", id="info"),
        pytest.param(an_event(event_info={}), "event_info.metrics", id="no metrics"),
        pytest.param(an_event(user_info=1), "user_info", id="user info"),
        pytest.param(metrics(a=float("nan")), "event_info.metrics.a", id="nan"),
        pytest.param(metrics(a=float("inf")), "event_info.metrics.a", id="infinity"),
        pytest.param(metrics(a=True), "event_info.metrics.a", id="a truth value"),
        pytest.param(metrics(a={"b": 1}), "event_info.metrics.a", id="nested"),
        pytest.param(metrics(a="x" * 1001), "event_info.metrics.a", id="a long text"),
        pytest.param(metrics(a=1 << 64), "event_info.metrics.a", id="too large"),
        pytest.param(an_event(captured_date="2026-01-02"), "captured_date", id="a date alone"),
        pytest.param(an_event(captured_date="2026-01-02T03:04:05"), "offset", id="naive"),
        pytest.param(an_event(captured_date="soon"), "captured_date", id="no time"),
        pytest.param(an_event(captured_date=1767323045), "is no ISO 8601", id="unix seconds"),
        pytest.param(an_event(captured_date="2026-01-02T03:10:00Z"), "future", id="to come"),
        pytest.param(an_event(captured_date="2024-01-02T03:04:05Z"), "year ago", id="too old"),
        pytest.param(
            an_event(type="trace", event_info={"pc": 1}), "event_info.reason", id="reason"
        ),
        pytest.param(
            an_event(type="trace", event_info={"reason": 1, "pc": -1}), "event_info.pc", id="pc"
        ),
        pytest.param(
            an_event(type="trace", event_info={"reason": 1, "pc": 1, "lr": None}),
            "event_info.lr",
            id="a register that is null",
        ),
        pytest.param(an_event(user_info={"a": "x" * 300_000}), "bytes", id="too much"),
        pytest.param(an_event(user_info={"a": "\ud800"}), "JSON", id="half a character"),
        pytest.param(an_event(user_info={"a": object()}), "JSON", id="no JSON"),
    ],
)
def test_what_the_service_would_refuse_is_refused_before_it_is_kept(event, field):
    with pytest.raises(UsageError, match=field):
        check_event(event, NOW)


@pytest.mark.contract("O1.1")
def test_the_older_form_names_a_release_instead_of_the_pair():
    event = an_event(software_type=..., software_version=..., release_version="1.0.0")
    assert json.loads(check_event(event, NOW))["release_version"] == "1.0.0"
    with pytest.raises(
        UsageError, match=r"^release_version 'v1' is no Semantic Version"
    ) as refused:
        check_event({**event, "release_version": "v1"}, NOW)
    assert "1.2.3-rc.1" in refused.value.hint


def test_of_a_device_whose_clock_was_not_set_the_time_is_left_out():
    with pytest.raises(UsageError, match="a year ago") as refused:
        check_event(an_event(captured_date="1970-01-01T00:00:10Z"), NOW)
    assert "leave it out where the device's clock was not set" in refused.value.hint


def test_times_become_utc_and_a_missing_one_is_now():
    zone = timezone(timedelta(hours=2))
    text = NOW.astimezone(zone).isoformat()
    assert json.loads(check_event(an_event(captured_date=text), NOW))["captured_date"] == (
        "2026-01-02T03:04:05Z"
    )
    assert json.loads(check_event(an_event(), NOW))["captured_date"] == "2026-01-02T03:04:05Z"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
)


@given(st.sampled_from([*an_event(), "captured_date", "extra_info", "release_version"]), JSON)
def test_any_value_of_any_field_is_sent_as_it_is_or_refused(field, value):
    event = an_event(**{field: value})
    try:
        body = check_event(event, NOW)
    except UsageError:
        return
    assert json.loads(body).get(field) == value or field == "captured_date"


@given(JSON)
def test_any_metrics_are_sent_as_they_are_or_refused(value):
    event = an_event(event_info={"metrics": value})
    try:
        body = check_event(event, NOW)
    except UsageError:
        return
    assert json.loads(body)["event_info"]["metrics"] == value


def test_a_request_is_a_json_array_even_of_one():
    event = heartbeat(KIT, {}, NOW)
    request = PushEvents([event], "key-1").request()
    assert (request.method, request.path) == ("POST", "/api/v0/events")
    assert request.headers == {"content-type": "application/json", "x-request-id": "key-1"}
    assert request.content is not None
    assert len(json.loads(request.content)) == 1
    twice = PushEvents([event, event]).request().content
    assert twice is not None
    assert len(json.loads(twice)) == 2


@pytest.mark.parametrize(
    "push",
    [
        PushEvents([b"{}"]),
        PushChunks("kit-1", [b"abc"]),
        UploadCoredump(b"CORE"),
        CommitUpload(FileKind.ELF_COREDUMP, "token"),
    ],
    ids=lambda push: type(push).__name__,
)
def test_the_page_of_a_portal_is_not_taken_for_the_services_answer(push):
    for status, kind, body in (
        (202, "text/plain", b"Accepted"),
        (202, "application/json", b"{}"),
        (200, "", b""),
    ):
        push.parse(Response(status, {"content-type": kind}, body))
    for kind, body in (("text/html; charset=utf-8", b"log in"), ("", b"\n <!doctype html>")):
        with pytest.raises(BadAnswer, match="expected that it is taken"):
            push.parse(Response(200, {"content-type": kind}, body))
