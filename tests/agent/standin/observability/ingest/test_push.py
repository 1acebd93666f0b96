"""Pushes with the project key: the stand-in's half of O3.4, O5.1, O5.2."""

from __future__ import annotations

import asyncio
import base64
import gzip
from urllib.parse import urlsplit

import pytest

from tests.support.cloud.observability import (
    OCTETS,
    Caller,
    an_event,
    error_of,
    in_parts,
    problems,
    push,
    push_chunk,
    with_project_key,
    with_token,
)
from tests.support.cloud.standin import StandIn
from tests.support.dumps.sdk_bytes import (
    EXAMPLE_PAIR,
    EXAMPLE_SINGLE,
    chunks,
    coredump,
    event_message,
    heartbeat,
)


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
@pytest.mark.parametrize(
    ("metrics", "wrong"),
    [
        ({"a": 1, "b": [1]}, {"b": {"value": ["Not a valid number."]}}),
        ({"": 1}, {"": {"key": ["Shorter than minimum length 1."]}}),
        (
            {"x" * 129: "y" * 1001},
            {
                "x" * 129: {
                    "key": ["Longer than maximum length 128."],
                    "value": ["Longer than maximum length 1000."],
                }
            },
        ),
    ],
    ids=["value", "key", "both"],
)
async def test_a_wrong_metric_is_named_in_the_published_form(
    standin: StandIn, metrics: dict[str, object], wrong: dict[str, object]
) -> None:
    answer = await push(standin, [an_event(), an_event(event_info={"metrics": metrics})])
    error = error_of(answer)
    assert (error["http_code"], error["type"]) == (400, "InvalidUsageError")
    assert error["message"] == {"1": {"event_info": {"metrics": wrong}}}


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
async def test_who_sends_a_chunk_of_no_type_is_told_which_there_are(standin: StandIn) -> None:
    caller = with_project_key(standin)
    answer = await caller("POST", "/api/v0/chunks/kit-1", content=EXAMPLE_SINGLE)
    assert "application/octet-stream" in error_of(answer)["message"]
    assert "no type at all" in error_of(answer)["message"]


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


@pytest.mark.contract("O5.1")
@pytest.mark.parametrize("path", ["/api/v0/events", "/api/v0/chunks/kit-1", "/api/v0/upload"])
async def test_a_body_of_a_hundred_megabytes_is_refused_at_once(
    standin: StandIn, path: str
) -> None:
    place = urlsplit(standin.urls["ingress"])
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 104857600\r\n"
    key = standin.credentials["project_key"]
    writer.write(f"{head}Service-Project-Key: {key}\r\n\r\n".encode())
    said = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    assert said.startswith(b"HTTP/1.1 413")
    assert b"\r\nconnection: close\r\n" in said.lower(), "what follows is no request"
    assert b"bytes at most" in await asyncio.wait_for(reader.read(), 60)
    writer.close()
    await writer.wait_closed()
    assert (await push(standin, [an_event()])).status_code == 202
