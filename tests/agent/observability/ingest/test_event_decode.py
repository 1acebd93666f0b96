"""Events of devices: CBOR read under the names of the JSON interface."""

from __future__ import annotations

import json
from contextlib import suppress

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observability.ingest.chunks import DeviceMessage
from agent.observability.ingest.event_decode import NotDecodable, decode_payload


def decoded(value: object, kind: str = "event"):
    return decode_payload(DeviceMessage(kind, cbor2.dumps(value)))


def test_a_heartbeat_reads_under_the_names_of_the_json_interface():
    assert decoded(
        {
            2: 1,
            3: 1,
            7: "kit",
            10: "app",
            9: "1.2.3",
            6: "dk",
            11: b"\x01" * 5,
            1: 1767323045,
            4: {2: 0, 1: [1, None]},
        }
    ) == {
        "type": "heartbeat",
        "schema_version": 1,
        "sdk_version": "0.5.0",
        "device_serial": "kit",
        "software_type": "app",
        "software_version": "1.2.3",
        "hardware_version": "dk",
        "build_id": "0101010101",
        "captured_date": "2026-01-02T03:04:05Z",
        "event_info": {"session": 0, "metrics": [1, None]},
    }


def test_a_trace_names_its_fields_and_shows_bytes_as_hex():
    event = decoded({2: 2, 3: 1, 4: {1: 0x8001, 2: 4, 3: 5, 4: 6, 5: 1, 6: 7, 7: -1, 8: b"hi"}})
    assert event["type"] == "trace"
    assert event["event_info"] == {
        "reason": 0x8001,
        "pc": 4,
        "lr": 5,
        "mcu_reset_register": 6,
        "coredump_saved": 1,
        "user_reason": 7,
        "status_code": -1,
        "log": {"hex": "6869"},
    }


def test_several_events_of_one_message_are_a_list():
    assert [event["type"] for event in decoded([{2: 1}, {2: 2}])] == ["heartbeat", "trace"]


@pytest.mark.parametrize(
    ("kind", "flat", "lines"),
    [
        (4, [3, "bad", 0, b"\x01"], [("error", "bad"), ("debug", {"hex": "01"})]),
        (6, [99, 1, "timed"], [("info", "timed")]),
    ],
)
def test_logs_become_lines(kind, flat, lines):
    event = decoded({2: kind, 4: flat}, "log")
    assert [(line["level"], line["text"]) for line in event["event_info"]] == lines


def test_a_line_that_the_device_cut_inside_a_character_hides_no_other():
    whole = cbor2.dumps({2: 4, 4: [1, "whole", 1, "21 \N{DEGREE SIGN}"]})
    event = decode_payload(DeviceMessage("log", whole.replace(b"e21 \xc2\xb0", b"d21 \xc2")))
    assert [line["text"] for line in event["event_info"]] == ["whole", "21 \ufffd"]


def test_a_data_recording_names_its_fields():
    event = decoded({2: 5, 4: {1: 10, 2: ["text/plain"], 3: "why", 4: b"\xff"}}, "cdr")
    assert event["event_info"] == {
        "duration_ms": 10,
        "mimetypes": ["text/plain"],
        "reason": "why",
        "data": {"hex": "ff"},
    }


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("", id="nothing"),
        pytest.param("a1", id="cut short"),
        pytest.param("a1020100", id="bytes behind the event"),
        pytest.param("01", id="no map"),
        pytest.param("82a1020101", id="a number among events"),
        pytest.param("81" * 100 + "01", id="too deep"),
        pytest.param("a104d81c81d81d00", id="it contains itself"),
        pytest.param("a20204048101", id="half a log line"),
    ],
)
def test_what_cannot_be_decoded_is_a_named_error(payload):
    with pytest.raises(NotDecodable):
        decode_payload(DeviceMessage("event", bytes.fromhex(payload)))


@given(st.binary(max_size=80))
def test_any_payload_decodes_to_json_or_is_a_named_error(payload):
    try:
        value = decode_payload(DeviceMessage("event", payload))
    except NotDecodable:
        return
    json.dumps(value, allow_nan=False)


@pytest.mark.parametrize("value", ["e1", "f0", "c11a7fffffff", "d820f6", "43010203"], ids=str)
def test_a_type_that_is_no_number_is_still_shown(value):
    payload = bytes.fromhex("a102" + value)
    with suppress(NotDecodable):
        json.dumps(decode_payload(DeviceMessage("event", payload)))


def test_numbers_that_json_cannot_carry_are_text():
    event = decoded({2: 1, 4: {1: {"a": float("nan"), "b": 1 << 70, "c": float("-inf")}}})
    assert event["event_info"]["metrics"] == {"a": "nan", "b": hex(1 << 70), "c": "-inf"}
    endless = 1 << 20_000  # over what Python writes in decimal digits
    assert decoded({1: endless, 2: endless}) == {
        "captured_date": hex(endless),
        "type": hex(endless),
    }
    assert decoded({2: 4, 4: [endless, "on"]})["event_info"][0]["level"] == hex(endless)
