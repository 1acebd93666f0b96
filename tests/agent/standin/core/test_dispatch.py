"""Requests for no route, and bodies that are too large."""

from __future__ import annotations

import asyncio

import pytest
from raw_requests import answers, connect
from standin import StandIn

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    "path",
    [
        "/v1/fota-jobs",
        "/v1/devices/public-keys",
        "/v1/firmwares",
        "/v1/location/wifi",
        "/v1/claimed-devices",
        "/control",
        "/api/v0/events",
        "/api/v0/chunks/kit-1",
        "/api/v0/upload",
        "/api/v0/upload/coredump",
        "/api/v0/organizations/acme/projects/kits/cohorts",
    ],
)
async def test_a_body_of_a_hundred_megabytes_is_refused_before_it_is_sent(
    standin: StandIn, path: str
) -> None:
    reader, writer = await connect(standin)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {100 * MEGABYTE}\r\n"
    token = standin.credentials["api_key"]
    writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    status = await asyncio.wait_for(reader.readline(), 60)
    assert status.startswith(b"HTTP/1.1 413"), status
    writer.close()
    assert await answers(standin)


async def test_a_body_without_a_length_is_refused_once_it_is_too_long(standin: StandIn) -> None:
    reader, writer = await connect(standin)
    head = "POST /v1/fota-jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    kind = "Content-Type: application/json\r\n"
    token = standin.credentials["api_key"]
    writer.write(f"{head}{kind}Authorization: Bearer {token}\r\n\r\n".encode())
    chunk = b"%x\r\n" % MEGABYTE + b" " * MEGABYTE + b"\r\n"
    sent = 0
    answer = asyncio.create_task(reader.readline())
    while not answer.done() and sent < 100:
        writer.write(chunk)
        sent += 1
        try:
            await asyncio.wait_for(writer.drain(), 5)
        except (ConnectionError, TimeoutError):
            break
        await asyncio.sleep(0)
    assert (await asyncio.wait_for(answer, 60)).startswith(b"HTTP/1.1 413")
    assert sent < 50
    writer.close()
    assert await answers(standin)


async def test_unknown_paths_and_methods_are_json_errors(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/nothing")
    assert (answer.status_code, answer.json()["code"]) == (404, 40420)
    answer = await standin.client.post("/v1/status")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]
