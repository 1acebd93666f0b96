"""Slow and silent clients: others are served all the same."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
from urllib.parse import urlsplit

import httpx
import pytest

from agent.standin.core.connections import cancel_and_wait

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


async def test_tasks_that_are_cancelled_have_ended_and_what_they_raise_is_dropped() -> None:
    ended: list[str] = []
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("slow")

    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError

    tasks = [asyncio.create_task(slow()), asyncio.create_task(fails())]
    await asyncio.sleep(0)
    await cancel_and_wait(*tasks, within_s=60)
    assert ended == ["slow"]
    assert all(task.done() for task in tasks)
    del tasks
    gc.collect()
    assert told == []


async def test_a_task_that_resists_its_cancellation_is_not_waited_for_without_end() -> None:
    let_go = asyncio.Event()

    async def resists() -> None:
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()

    task = asyncio.create_task(resists())
    await asyncio.sleep(0)
    await cancel_and_wait(task, within_s=0)
    assert not task.done()
    let_go.set()
    await task
