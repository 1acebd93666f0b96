"""Events as CBOR are decoded, or named as wrong."""

from __future__ import annotations

import contextlib
import math

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.standin.observability.ingest.event_decode import BadEvent, parse_events
from agent.standin.observability.ingest.messages import parse_message
from tests.support.dumps.sdk_bytes import EXAMPLE_SINGLE, heartbeat, trace


@pytest.mark.contract("O5.1")
def test_the_published_example_decodes_to_the_published_event() -> None:
    (event,) = parse_events(parse_message(EXAMPLE_SINGLE[1:-2]).payload)
    assert event.type == "heartbeat"
    assert event.captured_unix_s is None
    assert event.fields == {
        "sdk_version": "0.5.0",
        "device_serial": "TESTSERIAL",
        "software_type": "test-software",
        "software_version": "1.0.0-test",
        "hardware_version": "test-hardware",
        "event_info": {"metrics": {"chunk_test_success": 1}},
    }


def test_a_device_may_batch_its_events() -> None:
    events = parse_events(cbor2.dumps([heartbeat(), trace(reason=0x8008)]))
    assert [event.type for event in events] == ["heartbeat", "trace"]
    assert events[1].fields["event_info"] == {"reason": 0x8008, "pc": 0x37581, "lr": 0x3750E}


def test_metrics_in_the_order_of_their_definition_keep_that_order() -> None:
    (event,) = parse_events(cbor2.dumps({2: 1, 4: {2: 0, 1: [3600, None, "text"]}}))
    assert event.fields["event_info"]["metrics"] == {"0": 3600, "1": None, "2": "text"}


@pytest.mark.parametrize(
    ("number", "flat", "lines"),
    [
        (4, [1, "up", 3, b"\x83\x01"], [
            {"level": "info", "text": "up"},
            {"level": "error", "compact": {"hex": "8301"}},
        ]),
        (6, [1_700_000_000, 2, "hot"], [
            {"timestamp": 1_700_000_000, "level": "warning", "text": "hot"},
        ]),
    ],
    ids=["plain", "timed"],
)  # fmt: skip
def test_logs_are_read_line_by_line(number: int, flat: list, lines: list) -> None:
    (event,) = parse_events(cbor2.dumps({2: number, 4: flat}))
    assert (event.type, event.fields["event_info"]) == ("log", {"lines": lines})


def test_a_recording_keeps_its_data() -> None:
    (event,) = parse_events(
        cbor2.dumps({2: 5, 1: 1_700_000_000, 4: {1: 9, 2: ["a/b"], 3: "r", 4: b"\0"}})
    )
    assert event.captured_unix_s == 1_700_000_000
    assert event.fields["event_info"] == {
        "duration_ms": 9,
        "mimetypes": ["a/b"],
        "reason": "r",
        "data": {"hex": "00"},
    }


def test_numbers_that_json_lacks_become_null() -> None:
    (event,) = parse_events(cbor2.dumps(heartbeat(metrics={"nan": math.nan, "up": math.inf})))
    assert event.fields["event_info"]["metrics"] == {"nan": None, "up": None}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        cbor2.dumps([]),
        cbor2.dumps(7),
        cbor2.dumps({2: 99}),
        cbor2.dumps({2: 1, 4: 7}),
        cbor2.dumps({2: 4, 4: [1]}),
        cbor2.dumps({2: 1, 7: 5}),
        cbor2.dumps(heartbeat()) + b"\0",
        b"\x81" * 5000,
        # A list that holds itself, and one whose items double nine times over.
        bytes.fromhex("d81c81d81d00"),
        bytes.fromhex("a2020104") + b"\xa1\x01\xa1\x61a" + b"\xd8\x1c\x81\xd8\x1d\x00",
    ],
)
def test_what_is_no_event_is_named(payload: bytes) -> None:
    with pytest.raises(BadEvent):
        parse_events(payload)


@settings(max_examples=300)
@given(payload=st.binary(max_size=80))
def test_any_bytes_are_an_event_or_named(payload: bytes) -> None:
    with contextlib.suppress(BadEvent):
        parse_events(payload)
