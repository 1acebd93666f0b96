"""Hostile clients: whatever they do, the stand-in goes on answering the others."""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import urlsplit

import httpx
import pytest
from standin import StandIn

from agent.standin import jsonata_engine

MEGABYTE = 1024 * 1024


async def connect(standin: StandIn) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    target = urlsplit(standin.urls["device_cloud"])
    return await asyncio.open_connection(target.hostname, target.port)


async def answers(standin: StandIn) -> bool:
    answer = await standin.client.get("/v1/devices", headers=standin.bearer("api_key"))
    return answer.status_code == 200


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


@pytest.mark.parametrize("opening", ["[", '{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize(
    ("method", "path", "credential"),
    [
        ("POST", "/v1/fota-jobs", "api_key"),
        ("PATCH", "/v1/devices/nrf-352656109000002/state", "api_key"),
        ("POST", "/v1/devices/nrf-352656109000002/messages", "api_key"),
        ("POST", "/v1/location/cell", "service_token"),
        ("POST", "/v1/claimed-devices", "api_key"),
        ("POST", "/control", "control_token"),
        ("POST", "/api/v0/organizations/acme/projects/kits/cohorts", "organization_auth_token"),
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


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("localhost", 200), ("LOCALHOST:80", 200), ("localhost.:80", 200), ("127.0.0.1", 200),
        ("127.0.0.1:65535", 200), ("[::1]", 200), ("[::1]:80", 200), ("[fe80::1%25lo]:80", 200),
        ("evil.example", 421), ("localhost.evil.example", 421), ("evil.example:80", 421), ("", 421),
        ("[::1]evil.example", 421), ("[::1", 421), ("127.0.0.1:80@evil.example", 421),
        ("localhost:80:evil.example", 421), ("localhost:x", 421), ("user@localhost", 421),
        ("0x7f.1", 421), ("127.0.0.1, evil.example", 421), ("localhost..", 421), ("..", 421),
    ],
)  # fmt: skip
async def test_a_host_header_is_ours_to_the_last_character_or_refused(
    standin: StandIn, given: str, status: int
) -> None:
    answer = await standin.client.get("/v1/status", headers={"Host": given})
    assert answer.status_code == status


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
        "Content-Length: 5, 6",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Host: evil.example",
    ],
)
async def test_a_request_whose_end_can_be_read_in_two_ways_hides_no_other(
    standin: StandIn, framing: str
) -> None:
    reader, writer = await connect(standin)
    head = f"POST /v1/fota-jobs HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n"
    hidden = "0\r\n\r\nGET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
    writer.write((head + hidden).encode())
    answer = await asyncio.wait_for(reader.read(), 60)  # to its end: the connection is closed
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), answer
    assert answer.count(b"HTTP/1.1 ") == 1
    writer.close()
    assert await answers(standin)


async def test_a_body_that_would_take_for_ever_to_read_is_read_at_once(standin: StandIn) -> None:
    key = {"Service-Project-Key": standin.credentials["project_key"]}
    client = standin.client
    told = {"kind": "MAR", "size": 5}
    prepared = (await client.post("/api/v0/upload", json=told, headers=key)).json()["data"]
    spaces = b"<PartNumber>1</PartNumber><ETag>" + b" " * 1_000_000 + b"x"
    answer = await client.post(prepared["upload_url"], content=spaces)
    assert answer.status_code == 400
    part = b"--x\r\n\r\n\x08a\xf5\x7c\r\n"
    many = await client.post(
        "/api/v0/chunks/kit-1",
        content=part * 100_000 + b"--x--",
        headers=key | {"Content-Type": "multipart/mixed; boundary=x"},
    )
    assert "parts" in many.json()["error"]["message"]
    rows = await client.post(
        "/v1/devices/public-keys",
        content=b"\n" * 4_000_000,
        headers=standin.bearer("api_key") | {"Content-Type": "text/csv"},
    )
    assert rows.status_code == 422


async def test_expressions_that_never_end_do_not_make_others_wait_for_ever(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonata_engine, "DEADLINE_S", 0.5)
    monkeypatch.setattr(jsonata_engine, "TURN_S", 1.0)

    async def ask(expression: str) -> httpx.Response:
        return await standin.client.get(
            "/v1/devices", params={"transform": expression}, headers=standin.bearer("api_key")
        )

    assert (await ask("id")).status_code == 200
    endless = "($f := function($x) { $f($x + 1) }; $f(0))"
    asked = await asyncio.gather(*(ask(endless) for _ in range(12)), ask("id"))
    assert {answer.status_code for answer in asked[:-1]} == {400, 429}
    assert (asked[-1].status_code, asked[-1].headers["retry-after"]) == (429, "5")
    assert (await ask("id")).status_code == 200


FLOOD = """
import socket, sys
host, port, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
held = []
for number in range(count):
    try:
        client = socket.create_connection((host, port), 5)
        # One half says nothing at all, the other asks and does not read.
        if number % 2:
            client.sendall(f"GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n".encode() * 20)
        held.append(client)
    except OSError:
        pass
print(len(held), flush=True)
sys.stdin.read()
"""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from agent.cli.main import main
sys.argv[1:] = ["cloud", "serve", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("flooded", "asked", "path", "credential", "options"),
    [
        ("device_cloud", "/v1/openapi.json", "/v1/devices", "api_key", ()),
        ("api", "/api/v0/openapi.json", "/api/v0/organizations", "organization_auth_token", ()),
        ("api", "/api/v0/openapi.json", "/v1/devices", "api_key", ("--split",)),
    ],
    ids=["device-cloud", "observability", "another-host"],
)
async def test_slow_and_silent_clients_take_no_others_place(
    flooded: str, asked: str, path: str, credential: str, options: tuple[str, ...]
) -> None:
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LIMITED, *options, stdout=pipe
    )
    ready = json.loads(await server.stdout.readline())
    target = urlsplit(ready["urls"][flooded])
    where = (target.hostname, str(target.port), "400", asked)
    flood = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FLOOD, *where, stdin=pipe, stdout=pipe
    )
    try:
        assert int(await asyncio.wait_for(flood.stdout.readline(), 60)) > 200
        async with httpx.AsyncClient(base_url=ready["urls"]["device_cloud"], timeout=60) as client:
            for _ in range(5):
                answer = await client.get(
                    path,
                    headers={
                        "Authorization": f"Bearer {ready['credentials'][credential]}",
                        "Connection": "close",
                    },
                )
                assert answer.status_code == 200
    finally:
        await flood.communicate(b"")
        server.terminate()
        assert await server.wait() == 0
