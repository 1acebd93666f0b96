"""Unfinished bodies at the stand-in: what they hold in sum, and whose requests go on."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.core import bodies
from agent.standin.core.bodies import Body, BodyGivenUp, BodyTooLarge
from tests.support.cloud.raw_requests import Stream, begin, finish
from tests.support.cloud.standin import StandIn

CONTENT = json.dumps({"desired": {"a": "x" * 300_000}}).encode()
STATE = "/v1/devices/nrf-352656109000002/state"


async def unfinished(standin: StandIn, sent: bytes = CONTENT[:-1]) -> Stream:
    """Begin a change of a device's state and send that of its body; return once it was counted."""
    token = standin.bearer("api_key")["Authorization"]
    headers = (f"Authorization: {token}", "Content-Type: application/json")
    stream = await begin(standin, "PATCH", STATE, CONTENT, *headers)
    counted = set(Body._unfinished)
    stream[1].write(sent)

    async def seen() -> None:
        while not stream[0]._buffer and len(sent) not in {  # noqa: ASYNC110 - the server's own
            held for body, held in Body._unfinished.items() if body not in counted
        }:
            await asyncio.sleep(0)

    await asyncio.wait_for(seen(), 60)
    return stream


async def refusal(stream: Stream) -> tuple[bytes, dict]:
    """Return status line with headers, and the JSON, of the answer that closes a connection."""
    stream[1].write_eof()
    head, _, body = (await asyncio.wait_for(stream[0].read(), 60)).partition(b"\r\n\r\n")
    stream[1].close()
    return head.lower(), json.loads(body)


async def test_bodies_that_come_too_slowly_make_room_for_those_that_come(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MOST_HELD_BYTES", 1_000_000)
    monkeypatch.setattr(bodies, "_GRACE_S", 0.0)
    monkeypatch.setattr(bodies, "_LEAST_BYTES_S", float("inf"))
    streams = [await unfinished(standin) for _ in range(10)]
    assert Body._held_by_all <= bodies.MOST_HELD_BYTES
    answer = await standin.client.patch(STATE, content=CONTENT, headers={
        **standin.bearer("api_key"), "Content-Type": "application/json"
    })  # fmt: skip
    assert answer.status_code == 202, answer.text
    for stream in streams[:6]:
        head, body = await refusal(stream)
        assert head.startswith(b"http/1.1 503")
        assert b"retry-after: 2" in head
        assert b"\r\nconnection: close" in head
        assert body["code"] == 50300
    assert await finish(streams[-1], CONTENT[-1:]) == 202
    for stream in streams[6:-1]:
        stream[1].close()


async def test_where_none_is_slow_the_newest_is_refused_and_the_oldest_goes_on(
    standin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MOST_HELD_BYTES", 650_000)
    monkeypatch.setattr(bodies, "_GRACE_S", float("inf"))
    first, second, third = [await unfinished(standin) for _ in range(3)]
    head, _ = await refusal(third)
    assert head.startswith(b"http/1.1 503")
    small = await standin.client.patch(
        STATE, json={"desired": {"b": "x" * 1000}}, headers=standin.bearer("api_key")
    )
    assert small.status_code == 202
    monkeypatch.setattr(bodies, "MOST_HELD_BYTES", 1)
    assert await finish(first, CONTENT[-1:]) == 202
    assert await finish(second, CONTENT[-1:]) == 202
    assert Body._held_by_all == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 300_000), st.booleans()), max_size=40))
def test_what_is_counted_is_what_unfinished_bodies_hold(parts: list[tuple[int, int, bool]]) -> None:
    async def run() -> None:
        coming: asyncio.Queue[dict] = asyncio.Queue()
        held = [Body(coming.get, 600_000) for _ in range(5)]
        for index, size, more in parts:
            coming.put_nowait({"type": "http.request", "body": bytes(size), "more_body": more})
            refused = False
            try:
                await held[index]()
            except (BodyGivenUp, BodyTooLarge):
                refused = True
            if refused or not more:
                held[index].release()
                held[index] = Body(coming.get, 600_000)
            assert Body._held_by_all == sum(body._held for body in Body._unfinished)
            others = list(Body._unfinished)[1:]
            assert sum(body._held for body in others if body._held > 65536) <= 1_000_000
        for body in held:
            body.release()
        assert (Body._held_by_all, Body._unfinished) == (0, {})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "MOST_HELD_BYTES", 1_000_000)
        asyncio.run(run())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc shows a process's memory")
async def test_four_hundred_unfinished_bodies_do_not_take_the_memory_of_all_and_a_stop_is_silent(
    tmp_path: Path,
) -> None:
    pipe, said = asyncio.subprocess.PIPE, tmp_path / "said"
    with said.open("w") as errors:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agent", "cloud", "serve", stdout=pipe, stderr=errors
        )
    assert server.stdout is not None
    ready = json.loads(await server.stdout.readline())

    def resident_mb() -> int:
        status = Path(f"/proc/{server.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024

    before = resident_mb()
    target = urlsplit(ready["urls"]["device_cloud"])
    key = {"Authorization": f"Bearer {ready['credentials']['api_key']}"}
    head = f"PATCH {STATE} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key['Authorization']}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 900010\r\n\r\n"

    def flood() -> list[socket.socket]:
        held = []
        for _ in range(400):
            client = socket.create_connection((target.hostname or "", target.port or 0), 60)
            client.sendall(head.encode() + bytes(900_000))
            held.append(client)
        return held

    held = await asyncio.to_thread(flood)
    async with httpx.AsyncClient(base_url=ready["urls"]["device_cloud"], timeout=60) as client:
        answer = await client.patch(STATE, json={"desired": {"a": 1}}, headers=key)
    assert answer.status_code == 202
    assert resident_mb() - before < 250
    server.terminate()
    assert await server.wait() == 0
    for client in held:
        client.close()
    assert said.read_text() == ""
