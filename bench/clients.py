"""CPU of a call beside a bare httpx client's, of a token beside PyJWT's; memory of a long walk."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from trials.measure import Row, median_us

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring
from agent.auth.key_files import sign
from agent.auth.modem_jwt import check_claims
from agent.auth.token_lifetime import LIFE_S
from agent.call import Host
from agent.cloud import DeviceCloud
from agent.cloud.device_reads import FetchDevice
from agent.config.secrets import Secret
from agent.http import HttpClient, HttpTransport, tls_context
from at.tokens.jwt import read_jwt

NAME = "clients"
CALL_RATIO = 1.3
TOKEN_RATIO = 1.1
WALK_BYTES = 1_000_000
DEVICE = {
    "id": "nrf-358299840010349",
    "name": "nrf-358299840010349",
    "type": "Generic",
    "tags": ["demo"],
    "tenantId": "a0673464-e4e1-4b87-bffd-6941a012067b",
    "firmware": {"supports": ["APP", "MODEM"]},
    "$meta": {
        "version": "41",
        "createdAt": "2025-01-02T03:04:05.678Z",
        "updatedAt": "2025-01-02T03:04:05.678Z",
    },
}


def run(smoke: bool) -> Iterator[Row]:
    with _server() as base:
        yield from asyncio.run(_calls(base, 50 if smoke else 400, 1 if smoke else 7))
    yield from _tokens(50 if smoke else 2000)
    yield asyncio.run(_walk(500 if smoke else 10_000))


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request with the same device, with as little work as can be."""
    body = json.dumps(DEVICE).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    answer = head % len(body) + body
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


@contextmanager
def _server() -> Iterator[str]:
    """Serve in a thread of its own, so that the client's CPU time is the client's alone."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(_serve, "127.0.0.1", 0)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


async def _calls(base: str, count: int, rounds: int) -> list[Row]:
    key = "bench-api-key-of-no-service"
    ours = HttpClient(HttpTransport(), {Host.DEVICE_CLOUD: base}, Keyring([ApiKey(Secret(key))]))
    url, headers = f"{base}/v1/devices/{DEVICE['id']}", {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(verify=tls_context(), trust_env=False) as bare, ours:

        async def with_ours() -> None:
            await ours.send(FetchDevice(str(DEVICE["id"])))

        async def with_bare() -> None:
            (await bare.get(url, headers=headers)).json()

        pairs = [
            (await _cpu_us(with_ours, count), await _cpu_us(with_bare, count))
            for _ in range(rounds)
        ]
    mine, control = (statistics.median(side) for side in zip(*pairs, strict=True))
    contexts = {id(tls_context()) for _ in range(3)} | {id(tls_context(""))}
    return [
        Row(
            "CPU of a call",
            mine,
            "us",
            control * CALL_RATIO,
            f"bare httpx {control:.0f} us",
            peer=("httpx", control),
        ),
        Row("TLS contexts of the process", len(contexts), "", 1),
    ]


async def _cpu_us(once: Any, count: int) -> float:
    """Return the CPU time that one call takes in this thread, in microseconds."""
    await once()
    started = time.thread_time()
    for _ in range(count):
        await once()
    return (time.thread_time() - started) / count * 1e6


def _tokens(count: int) -> Iterator[Row]:
    key = ec.generate_private_key(ec.SECP256R1())
    now = time.time()
    claims = {"sub": "nrf-358299840010349"}

    def with_pyjwt() -> None:
        issued = int(now)
        jwt.encode({**claims, "iat": issued, "exp": issued + LIFE_S}, key, algorithm="ES256")

    mine = median_us(lambda: sign(claims, key, now), count)
    control = median_us(with_pyjwt, count)
    yield Row("a token made", mine, "us", control * TOKEN_RATIO, f"PyJWT {control:.0f} us",
              peer=("PyJWT", control))  # fmt: skip
    token = sign(claims, key, now)

    def read_with_pyjwt() -> None:
        jwt.get_unverified_header(token)
        jwt.decode(token, options={"verify_signature": False, "verify_exp": True})

    mine = median_us(lambda: check_claims(read_jwt(token), now=now), count)
    control = median_us(read_with_pyjwt, count)
    what = "a modem's token checked"
    yield Row(what, mine, "us", control * TOKEN_RATIO, f"PyJWT, unverified {control:.0f} us",
              peer=("PyJWT, unverified", control))  # fmt: skip


async def _walk(fleet: int) -> Row:
    """Walk a fleet that is made up page by page; return the growth after the first pages."""

    def answer(request: httpx.Request) -> httpx.Response:
        start = int(request.url.params.get("pageNextToken", "0"))
        items = [{**DEVICE, "id": f"nrf-{n}"} for n in range(start, min(start + 100, fleet))]
        body: dict[str, Any] = {"items": items, "total": 100}
        if start + 100 < fleet:
            body["pageNextToken"] = str(start + 100)
        content = _Content(json.dumps(body).encode())
        return httpx.Response(200, stream=content)

    transport = HttpTransport(transport=httpx.MockTransport(answer))
    hosts = {Host.DEVICE_CLOUD: "https://cloud.example"}
    cloud = DeviceCloud(HttpClient(transport, hosts, Keyring([ApiKey(Secret("bench-api-key"))])))
    seen, settled, most = 0, 0, 0
    tracemalloc.start()
    async for _ in cloud.devices():
        seen += 1
        if seen == 300:
            tracemalloc.reset_peak()
            settled = tracemalloc.get_traced_memory()[0]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == fleet
    return Row(f"memory that {fleet} devices take", most - settled, "bytes", WALK_BYTES)


class _Content(httpx.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> Any:
        yield self._content
