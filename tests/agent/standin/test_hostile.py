"""Hostile clients: whatever they do, the stand-in goes on answering the others."""

from __future__ import annotations

import asyncio
import resource
from urllib.parse import urlsplit

import pytest
from standin import StandIn

MEGABYTE = 1024 * 1024


async def connect(standin: StandIn) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    target = urlsplit(standin.urls["device_cloud"])
    return await asyncio.open_connection(target.hostname, target.port)


async def answers(standin: StandIn) -> bool:
    answer = await standin.client.get("/v1/devices", headers=standin.bearer("api_key"))
    return answer.status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/v1/fota-jobs", "/v1/devices/public-keys", "/v1/firmwares", "/v1/location/wifi", "/control"],
)
async def test_a_body_of_a_hundred_megabytes_is_refused_before_it_is_sent(
    standin: StandIn, path: str
) -> None:
    reader, writer = await connect(standin)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {100 * MEGABYTE}\r\n"
    token = standin.credentials["api_key"]
    writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    status = await asyncio.wait_for(reader.readline(), 10)
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
    assert (await asyncio.wait_for(answer, 10)).startswith(b"HTTP/1.1 413")
    assert sent < 50
    writer.close()
    assert await answers(standin)


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize(
    ("method", "path", "credential"),
    [
        ("POST", "/v1/fota-jobs", "api_key"),
        ("PATCH", "/v1/devices/nrf-352656109000002/state", "api_key"),
        ("POST", "/v1/devices/nrf-352656109000002/messages", "api_key"),
        ("POST", "/v1/location/cell", "service_token"),
        ("POST", "/control", "control_token"),
    ],
)
async def test_nesting_of_a_hundred_thousand_is_refused(
    standin: StandIn, method: str, path: str, credential: str, opening: str
) -> None:
    for body in (opening * 100_000, opening * 100_000 + "1" + "]}"[opening != "["] * 100_000):
        answer = await standin.client.request(
            method,
            path,
            headers=standin.bearer(credential) | {"Content-Type": "application/json"},
            content=body,
        )
        assert answer.status_code in {400, 422}
    assert await answers(standin)


async def test_a_token_of_hostile_json_is_refused(standin: StandIn) -> None:
    for token in ("." * 3, "a.b.c", "W" * 60_000 + ".e30.AA", "e30.e30.", "\x7f.x.y"):
        answer = await standin.client.get(
            "/v1/devices", headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code in {400, 401, 431}
    assert await answers(standin)


async def test_slow_and_silent_clients_take_no_others_place(standin: StandIn) -> None:
    # As many as the limit on descriptors allows, both ends being in this process.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min(512, hard if hard > 0 else 512)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    held = []
    try:
        for number in range(limit):
            try:
                reader, writer = await asyncio.wait_for(connect(standin), 2)
            except (OSError, TimeoutError):
                break
            # One half says nothing at all, the other asks and does not read.
            if number % 2:
                writer.write(b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5)
            held.append((reader, writer))
        for _, writer in held[-12:]:
            writer.transport.abort()
        await asyncio.sleep(0.2)
        assert await asyncio.wait_for(answers(standin), 20)
    finally:
        for _, writer in held:
            writer.transport.abort()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert await answers(standin)
