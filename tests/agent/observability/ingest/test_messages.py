"""Messages told apart, opened and decoded."""

from __future__ import annotations

import json
from contextlib import suppress

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_lengths import compress

from agent.observability.ingest.event_decode import NotDecodable, decode_payload
from agent.observability.ingest.messages import DeviceMessage, expand, kind_of, open_message

KEY = b"THIS-IS-A-TEST-KEY-0123456789abc"


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (0, "none"),
        (1, "coredump"),
        (2, "event"),
        (3, "log"),
        (4, "cdr"),
        (5, "mar"),
        (9, "unknown"),
    ],
)
def test_the_low_six_bits_tell_the_kind(header, kind):
    assert open_message(bytes([header])).kind == kind
    assert kind_of(bytes([header | 0x80])) == kind


@pytest.mark.contract("O4.3")
def test_a_project_key_in_the_message_is_read_and_not_shown():
    opened = open_message(b"\x42" + KEY + b"\0" + b"payload")
    assert (opened.project_key, opened.payload) == (KEY.decode(), b"payload")
    assert KEY.decode() not in repr(opened)


@pytest.mark.parametrize("data", [b"", b"\x42", b"\x42" + KEY, b"\x42" + KEY + b"x", b"\x81\x08"])
def test_a_message_that_is_cut_short_is_an_error(data):
    with pytest.raises(ValueError, match=r"."):
        open_message(data)


def test_runs_and_literals_expand():
    assert expand(bytes.fromhex("08aa 05 010203 04 bb")) == bytes.fromhex("aaaaaaaa 010203 bbbb")


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=3), st.integers(1, 300)), max_size=8))
def test_what_a_device_codes_comes_back(runs):
    plain = b"".join(part * count for part, count in runs)
    assert open_message(b"\x81" + compress(plain)).payload == plain


@given(st.binary(max_size=60))
def test_any_bytes_expand_or_are_an_error(coded):
    try:
        expand(coded, limit=10_000)
    except ValueError:
        pass
    else:
        assert True


def test_a_few_bytes_do_not_fill_the_memory():
    with pytest.raises(ValueError, match="exceed"):
        expand(bytes.fromhex("feffffff0f 00"))


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
