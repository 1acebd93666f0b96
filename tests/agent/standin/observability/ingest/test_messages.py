"""Chunks become messages, and messages what they hold: header, run lengths, content."""

from __future__ import annotations

import asyncio

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.observability.ingest.messages import (
    BadMessage,
    MessageKind,
    expand_runs,
    parse_message,
)
from agent.standin.observability.project import Project
from agent.standin.observability.tables import EVENTS
from agent.standin.state import PROJECTS
from tests.support.cloud.observability import in_parts, problems, push_chunk, with_token
from tests.support.cloud.standin import StandIn
from tests.support.dumps.sdk_bytes import (
    EXAMPLE_PAIR,
    EXAMPLE_SINGLE,
    chunks,
    coredump,
    event_message,
    heartbeat,
    run_lengths,
    single,
    trace,
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
async def test_a_broken_crc_adds_no_event_and_is_told(standin: StandIn) -> None:
    broken = EXAMPLE_SINGLE[:-1] + bytes([EXAMPLE_SINGLE[-1] ^ 1])
    assert (await push_chunk(standin, broken)).status_code == 202
    swapped = in_parts([EXAMPLE_PAIR[1], EXAMPLE_PAIR[0]])
    media = {"Content-Type": "multipart/mixed; boundary=b"}
    assert (await push_chunk(standin, swapped, **media)).status_code == 202
    assert await with_token(standin).data("~/events") == []
    assert any("CRC" in problem for problem in await problems(standin))


@pytest.mark.contract("O5.1")
@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\x3f", "type 63 is not known"),
        (b"\x02\xff", "CBOR"),
        (b"\x01CORE", "core dump"),
        (b"\x42" + KEY.encode() + b"\0" + cbor2.dumps(heartbeat()), "project key"),
    ],
    ids=["kind", "event", "dump", "key"],
)
async def test_a_message_of_which_nothing_can_be_taken_is_told_in_the_processing_log(
    standin: StandIn, message: bytes, why: str
) -> None:
    assert (await push_chunk(standin, single(message))).status_code == 202
    assert await with_token(standin).data("~/events") == []
    [problem] = await problems(standin)
    assert why in problem


@pytest.mark.contract("O5.1")
async def test_the_serial_of_the_url_counts_where_an_event_names_none(standin: StandIn) -> None:
    await push_chunk(
        standin, single(event_message([heartbeat(), heartbeat("other")])), "of-the-url"
    )
    found = await with_token(standin).data("~/events", sort="id")
    assert [event["device"]["device_serial"] for event in found] == ["of-the-url", "other"]


@pytest.mark.contract("O5.1")
async def test_chunks_hold_logs_traces_and_recordings_too(standin: StandIn) -> None:
    log = b"\x03" + cbor2.dumps(heartbeat() | {2: 4, 4: [1, "up", 3, "down"]})
    recording = b"\x04" + cbor2.dumps(heartbeat() | {2: 5, 4: {1: 9, 2: ["a/b"], 3: "r", 4: b"z"}})
    for message in (log, recording, event_message(trace())):
        assert (await push_chunk(standin, single(message))).status_code == 202
    caller = with_token(standin)
    (listed,) = await caller.data("~/events", type="log")
    assert listed["event_info"]["lines"] == [
        {"level": "info", "text": "up"},
        {"level": "error", "text": "down"},
    ]
    (listed,) = await caller.data("~/events", type="custom-data-recording")
    assert listed["event_info"]["data"] == {"hex": "7a"}
    (one,) = await caller.data("~/traces")
    assert one["reason"] == "Assert"


@pytest.mark.contract("O5.1", "O5.2")
@pytest.mark.parametrize("packed", [True, False])
async def test_a_core_dump_in_chunks_becomes_a_trace(standin: StandIn, packed: bool) -> None:
    dump = coredump("kit-9", memory=bytes(700))
    message = b"\x81" + run_lengths(dump) if packed else b"\x01" + dump
    for chunk in chunks(message, 80):
        assert (await push_chunk(standin, chunk, "kit-9")).status_code == 202
    caller = with_token(standin)
    (one,) = await caller.data("~/traces")
    assert (one["reason"], one["source"]) == ("Hard Fault", "coredump")
    assert one["source_type"] == "coredump"
    assert one["device"]["device_serial"] == "kit-9"
    (stored,) = await caller.data("~/coredumps")
    assert stored["size"] == len(dump)
    assert len(await caller.data("~/issues")) == 1


@pytest.mark.contract("O5.1")
async def test_a_key_in_the_message_counts_more_than_that_of_the_request(standin: StandIn) -> None:
    other = standin.cloud.table(PROJECTS)["umbrella/kits"].project_key
    message = b"\x42" + other.encode() + b"\0" + cbor2.dumps(heartbeat("moved"))
    assert (await push_chunk(standin, single(message))).status_code == 202
    assert await with_token(standin).data("~/events") == []
    events = Project(standin.cloud, "umbrella", "kits").table(EVENTS)
    assert [event.device for event in events.values()] == ["moved"]


async def test_two_devices_push_chunks_at_once(standin: StandIn) -> None:
    message = event_message(heartbeat(metrics={"text": "x" * 200}))

    async def send(serial: str) -> None:
        for chunk in chunks(message, 40):
            assert (await push_chunk(standin, chunk, serial)).status_code == 202

    await asyncio.gather(*(send(f"kit-{number}") for number in range(5)))
    assert len(await with_token(standin).data("~/events")) == 5
    assert await problems(standin) == []
