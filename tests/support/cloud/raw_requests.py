"""Requests that no HTTP library sends: over a bare socket, in pieces."""

import asyncio
from urllib.parse import urlsplit

from tests.support.cloud.standin import StandIn

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


async def connect(standin: StandIn) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    target = urlsplit(standin.urls["device_cloud"])
    return await asyncio.open_connection(target.hostname, target.port)


async def answers(standin: StandIn) -> bool:
    answer = await standin.client.get("/v1/devices", headers=standin.bearer("api_key"))
    return answer.status_code == 200
