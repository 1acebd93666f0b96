"""Requests for no route, and bodies that are too large."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from agent.standin.core.dispatch import Dispatcher, Endpoint
from agent.standin.core.responses import Refused
from agent.standin.state import open_cloud
from tests.support.cloud.raw_requests import answers, connect
from tests.support.cloud.standin import StandIn

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
    said = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    assert said.startswith(b"HTTP/1.1 413"), said
    assert b"\r\nconnection: close\r\n" in said.lower()
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


async def test_a_path_with_fewer_variables_comes_first_whatever_the_order_of_the_routes() -> None:
    paths = ("/v1/{a}/{b}", "/v1/{a}/name", "/v1/{a}")

    def route(path: str) -> Endpoint:
        async def answer(_request: Request) -> Response:
            return Response(path)

        return Endpoint(path, answer, methods=["GET"])

    for order in (paths, paths[::-1]):
        routes = [route(path) for path in order]
        app = Dispatcher(routes, open_cloud(), lambda _path, status, text: Refused(status, text))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            for sent, path in (
                ("/v1/x/name", paths[1]),
                ("/v1/x/y", paths[0]),
                ("/v1/x", paths[2]),
            ):
                assert (await client.get(sent)).text == path
