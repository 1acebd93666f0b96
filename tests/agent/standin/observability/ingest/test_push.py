"""What devices push: events, chunks, core dumps; the stand-in's half of O3.4, O5.1, O5.2."""

from __future__ import annotations

import asyncio
import base64
import gzip
from urllib.parse import urlsplit

import cbor2
import pytest
from observability import (
    Caller,
    a_trace,
    an_event,
    error_of,
    with_project_key,
    with_token,
)
from sdk_bytes import (
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
from standin import StandIn

from agent.standin.faults import install

OCTETS = {"Content-Type": "application/octet-stream"}


async def push(standin: StandIn, body: object):
    return await with_project_key(standin)("POST", "/api/v0/events", "ingress", json=body)


async def push_chunk(standin: StandIn, content: bytes, serial: str = "kit-1", **headers: str):
    return await with_project_key(standin)(
        "POST", f"/api/v0/chunks/{serial}", "chunks", content=content, headers=OCTETS | headers
    )


def in_parts(parts: list[bytes], boundary: str = "b", head: str | None = None) -> bytes:
    body = b""
    for part in parts:
        usual = f"Content-Length: {len(part)}\r\nContent-Type: application/octet-stream"
        lines = usual if head is None else head
        lines = f"{lines}\r\n" if lines else ""
        body += f"--{boundary}\r\n{lines}\r\n".encode() + part + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


async def problems(standin: StandIn) -> list[str]:
    lines = (await with_token(standin)("GET", "~/processing-log")).json()["data"]
    return [line["message"] for line in lines if line["level"] == "error"]


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


@pytest.mark.contract("O3.4")
async def test_the_location_of_a_push_tells_what_became_of_it(standin: StandIn) -> None:
    answer = await push(standin, [an_event()])
    place = answer.headers["Location"]
    assert place.startswith(standin.urls["api"] + "/api/v0/queue/")
    for caller in (with_token(standin), with_project_key(standin)):
        assert (await caller("GET", urlsplit(place).path)).json() == {"status": "SUCCESS"}
    assert error_of(await Caller(standin, {})("GET", urlsplit(place).path))["http_code"] == 401
    assert error_of(await with_token(standin)("GET", "/api/v0/queue/none"))["http_code"] == 404


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
async def test_bodies_that_are_no_events_are_refused(standin: StandIn) -> None:
    for body in ([], {}, 5, "x", [[]]):
        assert error_of(await push(standin, body))["http_code"] == 400
    large = await push(standin, [an_event(user_info={"x": "y" * 2_000_000})])
    assert error_of(large)["http_code"] == 413
    plain = await with_project_key(standin)(
        "POST", "/api/v0/events", content=b"[]", headers={"Content-Type": "text/plain"}
    )
    assert error_of(plain)["http_code"] == 415


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


@pytest.mark.contract("O5.1")
@pytest.mark.parametrize("parts", [[EXAMPLE_SINGLE], list(EXAMPLE_PAIR)], ids=["single", "pair"])
async def test_the_published_chunks_are_listed_as_their_event(
    standin: StandIn, parts: list[bytes]
) -> None:
    for part in parts:
        answer = await push_chunk(standin, part, "TESTSERIAL")
        assert answer.status_code == 202
    (event,) = await with_token(standin).data("~/events", device="TESTSERIAL")
    assert event["event_info"] == {"metrics": {"chunk_test_success": 1}}
    assert event["software_type"] == "test-software"


@pytest.mark.contract("O5.1")
@pytest.mark.parametrize(
    "head",
    [
        None,
        "Content-Length: 46",
        "Content-Length: 46Content-Type: application/octet-stream",
        'Content-Disposition: form-data; name="chunk0"; filename="c"\r\nContent-Length: 46',
        "",
    ],
    ids=["usual", "no-type", "one-line", "disposition", "no-head"],
)
@pytest.mark.parametrize("quoted", [True, False])
async def test_several_chunks_come_in_parts_of_any_form(
    standin: StandIn, head: str | None, quoted: bool
) -> None:
    boundary = "7d9b-e"
    media = f'multipart/mixed; boundary="{boundary}"' if quoted else \
        f"multipart/mixed; boundary={boundary}"  # fmt: skip
    answer = await push_chunk(
        standin, in_parts(list(EXAMPLE_PAIR), boundary, head), **{"Content-Type": media}
    )
    assert answer.status_code == 202, answer.text
    assert len(await with_token(standin).data("~/events")) == 1


@pytest.mark.contract("O5.1")
async def test_parts_may_hold_any_bytes_but_their_boundary(standin: StandIn) -> None:
    message = event_message(heartbeat(metrics={"text": "\r\n--b\r\n--\r\n\r\n"}))
    body = in_parts(chunks(message, 30), "boundary-of-this-test")
    media = {"Content-Type": "multipart/mixed; boundary=boundary-of-this-test"}
    assert (await push_chunk(standin, body, **media)).status_code == 202
    (event,) = await with_token(standin).data("~/events")
    assert event["event_info"]["metrics"]["text"] == "\r\n--b\r\n--\r\n\r\n"


@pytest.mark.contract("O5.1")
@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({}, b"", 400),
        ({"Content-Encoding": "base64"}, b"!!!", 400),
        ({"Content-Encoding": "br"}, EXAMPLE_SINGLE, 415),
        ({"Content-Type": "application/json"}, b"[]", 415),
        ({"Content-Type": "multipart/mixed"}, b"x", 400),
        ({"Content-Type": "multipart/mixed; boundary=b"}, b"no such thing", 400),
        ({"Content-Type": "multipart/mixed; boundary=b"}, b"--b\r\n\r\nx\r\n", 400),
        ({}, bytes(1024 * 1024 + 1), 413),
        ({}, bytes(9 * 1024 * 1024), 413),
    ],
)
async def test_bad_requests_for_chunks_have_the_published_status(
    standin: StandIn, headers: dict[str, str], content: bytes, status: int
) -> None:
    answer = await push_chunk(standin, content, **headers)
    assert error_of(answer)["http_code"] == status


@pytest.mark.contract("O5.1")
async def test_a_chunk_without_a_length_is_refused(standin: StandIn) -> None:
    async def stream():
        yield EXAMPLE_SINGLE

    caller = with_project_key(standin)
    answer = await caller("POST", "/api/v0/chunks/kit-1", content=stream(), headers=OCTETS)
    assert error_of(answer)["http_code"] == 411


@pytest.mark.contract("O5.1")
async def test_base64_chunks_are_decoded(standin: StandIn) -> None:
    encoded = base64.b64encode(EXAMPLE_SINGLE)
    answer = await push_chunk(standin, encoded, **{"Content-Encoding": "base64"})
    assert answer.status_code == 202
    assert len(await with_token(standin).data("~/events")) == 1


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
    assert one["device"]["device_serial"] == "kit-9"
    (stored,) = await caller.data("~/coredumps")
    assert stored["size"] == len(dump)
    assert len(await caller.data("~/issues")) == 1


@pytest.mark.contract("O5.1")
async def test_a_key_in_the_message_counts_more_than_that_of_the_request(
    standin: StandIn,
) -> None:
    other = standin.cloud.table("projects").get("umbrella/kits")["project_key"]
    message = b"\x42" + other.encode() + b"\0" + cbor2.dumps(heartbeat("moved"))
    assert (await push_chunk(standin, single(message))).status_code == 202
    assert await with_token(standin).data("~/events") == []
    table = standin.cloud.table("observability/umbrella/kits/events")
    assert [event["device"] for event in table.values()] == ["moved"]


@pytest.mark.contract("O5.2")
@pytest.mark.parametrize("form", ["raw", "gzip", "form"])
async def test_a_core_dump_is_pushed_as_it_is_or_in_a_form(standin: StandIn, form: str) -> None:
    dump = coredump("kit-3")
    how = {
        "raw": {"content": dump, "headers": OCTETS},
        "gzip": {"content": gzip.compress(dump), "headers": OCTETS | {"Content-Encoding": "gzip"}},
        "form": {"files": {"File": ("core.bin", dump)}, "data": {"note": "first field"}},
    }[form]
    answer = await with_project_key(standin)("POST", "/api/v0/upload/coredump", "ingress", **how)
    assert answer.status_code == 202, answer.text
    assert "/api/v0/queue/" in answer.headers["Location"]
    (one,) = await with_token(standin).data("~/traces")
    assert one["device"]["device_serial"] == "kit-3"


@pytest.mark.contract("O5.2")
async def test_what_is_no_core_dump_is_taken_and_told_later(standin: StandIn) -> None:
    caller = with_project_key(standin)
    for content in (b"hello", coredump()[:-1]):
        answer = await caller("POST", "/api/v0/upload/coredump", content=content, headers=OCTETS)
        assert answer.status_code == 202
        status = await caller("GET", urlsplit(answer.headers["Location"]).path)
        assert status.json() == {"status": "FAILURE"}
    assert len(await problems(standin)) == 2
    assert await with_token(standin).data("~/traces") == []
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    answer = await caller(
        "POST",
        "/api/v0/upload/coredump",
        content=bomb,
        headers=OCTETS | {"Content-Encoding": "gzip"},
    )
    assert error_of(answer)["http_code"] == 413


async def test_a_rate_limit_is_a_setting_and_says_when_to_come_again(standin: StandIn) -> None:
    standin.clock.freeze()
    install(standin.cloud, ["rate-limit=2"])
    for _ in range(2):
        assert (await push(standin, [an_event()])).status_code == 202
    standin.clock.advance(600)
    answer = await push(standin, [an_event()])
    assert error_of(answer)["http_code"] == 429
    assert answer.headers["Retry-After"] == "3000"
    assert (await push(standin, [an_event("other-device")])).status_code == 202
    standin.clock.advance(3000)
    assert (await push(standin, [an_event()])).status_code == 202


async def test_two_devices_push_chunks_at_once(standin: StandIn) -> None:
    message = event_message(heartbeat(metrics={"text": "x" * 200}))

    async def send(serial: str) -> None:
        for chunk in chunks(message, 40):
            assert (await push_chunk(standin, chunk, serial)).status_code == 202

    await asyncio.gather(*(send(f"kit-{number}") for number in range(5)))
    assert len(await with_token(standin).data("~/events")) == 5
    assert await problems(standin) == []


async def test_the_processing_log_pages_by_cursor_and_filters(standin: StandIn) -> None:
    for _ in range(3):
        await push_chunk(standin, b"\xff", "kit-1")
    await push_chunk(standin, b"\xff", "kit-2")
    caller = with_token(standin)
    first = (await caller("GET", "~/processing-log", params={"page[size]": 2})).json()
    rest = (await standin.client.get(first["links"]["next"], headers=caller.headers)).json()
    assert [line["id"] for line in first["data"] + rest["data"]] == [1, 2, 3, 4]
    assert rest["links"]["next"] is None
    only = (await caller("GET", "~/processing-log", params={"device_serial": "kit-2"})).json()
    assert len(only["data"]) == 1


@pytest.mark.parametrize("path", ["/api/v0/events", "/api/v0/chunks/kit-1", "/api/v0/upload"])
async def test_a_body_of_a_hundred_megabytes_is_refused_at_once(
    standin: StandIn, path: str
) -> None:
    place = urlsplit(standin.urls["ingress"])
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 104857600\r\n"
    key = standin.credentials["project_key"]
    writer.write(f"{head}Service-Project-Key: {key}\r\n\r\n".encode())
    assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 413")
    writer.close()
    await writer.wait_closed()
    assert (await push(standin, [an_event()])).status_code == 202
