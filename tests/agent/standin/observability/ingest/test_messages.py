"""How the stand-in reads the messages of the device SDK: header, run lengths, events, dumps."""

from __future__ import annotations

import contextlib
import math
import struct

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sdk_bytes import EXAMPLE_SINGLE, block, coredump, heartbeat, run_lengths, trace

from agent.standin.observability.ingest.coredumps import BadCoredump, parse_coredump
from agent.standin.observability.ingest.events import BadEvent, parse_events
from agent.standin.observability.ingest.messages import (
    BadMessage,
    MessageKind,
    expand_runs,
    parse_message,
)

KEY = "0123456789abcdef0123456789abcdef"  # a test key


def test_the_first_byte_says_the_kind() -> None:
    message = parse_message(EXAMPLE_SINGLE[1:-2])
    assert (message.kind, message.project_key) == (MessageKind.EVENT, None)


def test_a_key_in_the_message_is_taken_with_its_nul() -> None:
    message = parse_message(b"\x42" + KEY.encode() + b"\0" + b"rest")
    assert (message.project_key, message.payload) == (KEY, b"rest")


def test_runs_are_expanded_when_the_first_byte_says_so() -> None:
    assert parse_message(b"\x81" + run_lengths(b"CORE" + bytes(50))).payload == b"CORE" + bytes(50)


@given(data=st.binary(max_size=300))
def test_runs_come_back(data: bytes) -> None:
    assert expand_runs(run_lengths(data)) == data


def test_a_run_of_gigabytes_is_refused_before_it_is_made() -> None:
    with pytest.raises(BadMessage, match="expands"):
        expand_runs(b"\xfe\xff\xff\xff\x0f\x00")


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x3f", b"\x42short", b"\x81\x03a", b"\x81\x80"])
def test_what_is_no_message_is_named(data: bytes) -> None:
    with pytest.raises(BadMessage):
        parse_message(data)


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


@pytest.mark.contract("O5.1", "O5.2")
def test_a_core_dump_says_who_died_and_of_what() -> None:
    dump = parse_coredump(coredump("kit-1", reason=0x9400, memory=b"m" * 32))
    assert (dump.device_serial, dump.reason, dump.machine) == ("kit-1", 0x9400, "arm")
    assert (dump.software_type, dump.software_version) == ("modem-app", "2.4.1")
    assert dump.hardware_version == "nrf9161dk"
    assert dump.build_id == bytes(range(20)).hex()
    assert dump.regions == ((0x2000_0000, 32),)
    assert not dump.truncated


@given(cut=st.integers(0, 300))
def test_a_torn_dump_is_never_taken_for_a_whole_one(cut: int) -> None:
    whole = coredump()
    with pytest.raises(BadCoredump):
        parse_coredump(whole[: min(cut, len(whole) - 1)])


def test_a_block_longer_than_the_dump_is_refused() -> None:
    bad = block(1, bytes(8))
    bad = bad[:8] + struct.pack("<I", 0xFFFF_FFFF) + bad[12:]
    size = 12 + len(bad) + 16
    data = struct.pack("<4sII", b"CORE", 2, size) + bad + struct.pack("<4sIII", b"DUMP", 0, 0, 0)
    with pytest.raises(BadCoredump, match="does not fit"):
        parse_coredump(data)
