"""A body that dribbles in while another change is made: what counts is what is there at its end."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from standin import StandIn

from agent.standin.device_cloud import seed

DEVICE = f"/v1/devices/{seed.GENERIC}"
BLE = f"/v1/devices/{seed.BLE}"
CHARACTERISTIC = f"{BLE}/characteristics/{seed.LED_CHARACTERISTIC}"
ANCHOR = "/v1/location/anchors/40:01:7a:00:00:01"

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def begin(standin: StandIn, method: str, path: str, body: bytes, *headers: str) -> Stream:
    """Send all of a request but its body; return once the server waits for that."""
    target = urlsplit(standin.urls["device_cloud"])
    reader, writer = await asyncio.open_connection(target.hostname, target.port)
    head = [
        f"{method} {path} HTTP/1.1",
        f"Host: {target.netloc}",
        f"Content-Length: {len(body)}",
        *headers,
        "Expect: 100-continue",
    ]
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    assert answer.startswith(b"HTTP/1.1 100 ")
    return reader, writer


async def finish(stream: Stream, body: bytes) -> int:
    """Send the body; return the status of the answer."""
    reader, writer = stream
    writer.write(body)
    line = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


@pytest.mark.contract("D5.2")
@pytest.mark.parametrize(
    ("method", "path", "shown", "body"),
    [
        ("PUT", f"{DEVICE}/name", DEVICE, "new"),
        ("PUT", f"{DEVICE}/tags", DEVICE, ["new"]),
        ("PATCH", f"{DEVICE}/state", DEVICE, {"reported": {"new": 1}}),
        ("PUT", CHARACTERISTIC, BLE, [8, 0]),
        ("PATCH", ANCHOR, ANCHOR, {"name": "new"}),
    ],
    ids=["name", "tags", "state", "characteristic", "anchor"],
)
async def test_of_two_changes_of_one_version_the_second_to_end_is_refused(
    standin: StandIn, method: str, path: str, shown: str, body: Any
) -> None:
    key = standin.bearer("api_key")
    anchor = {"macAddress": ANCHOR.rpartition("/")[2], "lat": 63.4, "lon": 10.4}
    await standin.client.post("/v1/location/anchors", json=anchor, headers=key)
    before = await standin.client.get(shown, headers=key)
    version, late = before.headers["etag"], json.dumps(body).encode()
    stream = await begin(
        standin,
        *(method, path, late),
        f"Authorization: {key['Authorization']}",
        f"If-Match: {version}",
        "Content-Type: application/json",
    )
    meanwhile = {"name": "first"} if path == ANCHOR else "first"
    other = path if path == ANCHOR else f"{shown}/name"
    answer = await standin.client.request(
        method if path == ANCHOR else "PUT", other, json=meanwhile, headers=key
    )
    assert answer.status_code == 202, answer.text
    assert await finish(stream, late) == 412
    after = (await standin.client.get(shown, headers=key)).json()
    assert after["name"] == "first"


@pytest.mark.contract("D5.2")
async def test_a_service_key_is_made_for_the_version_of_the_account_that_was_seen(
    standin: StandIn,
) -> None:
    path, key = "/v1/account/service-key-and-token", standin.bearer("api_key")

    async def make(version: str) -> int:
        return (await standin.client.post(path, headers=key | {"If-Match": version})).status_code

    async def version() -> str:
        return (await standin.client.get("/v1/account", headers=key)).headers["etag"]

    seen = await version()
    standin.clock.advance(1)
    assert await make("another") == 412
    assert await make(seen) == 200
    assert await version() != seen
    assert await make(seen) == 412


@pytest.mark.contract("O5.3")
async def test_an_upload_that_was_committed_takes_no_bytes_that_come_later(
    standin: StandIn,
) -> None:
    key = {"Service-Project-Key": standin.credentials["project_key"]}
    told = {"kind": "ANDROID_BUG_REPORT", "size": 5}
    prepared = (await standin.client.post("/api/v0/upload", json=told, headers=key)).json()["data"]
    path = urlsplit(prepared["upload_url"]).path
    late = await begin(standin, "PUT", path, b"later")
    assert (await standin.client.put(path, content=b"first")).status_code == 200
    commit = {"file": {"token": prepared["token"]}}
    answer = await standin.client.post("/api/v0/upload/bugreport", json=commit, headers=key)
    assert answer.status_code == 202
    assert await finish(late, b"later") == 404
    assert len(standin.cloud.table("observability/uploads")) == 0
    assert len(standin.cloud.table("observability/blobs")) == 1
