"""The server: its hosts, its end."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from agent.standin.core.operation import Host
from agent.standin.serve import serving
from agent.standin.state import open_cloud
from tests.support.cloud.standin import StandIn, running_standin, serve


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_told_to_stop_it_ends_well_and_takes_its_private_keys_along(name: str) -> None:
    command = [sys.executable, "-m", "agent", "cloud", "serve"]
    number = getattr(signal, name)
    # Whoever runs the tests may ignore it (nohup): the stand-in is not to inherit that.
    before = signal.signal(number, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        signal.signal(number, before)
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        key = Path(ready["credentials"]["service_key_file"])
        assert key.exists()
        process.send_signal(number)
        assert process.wait(30) == 0
    assert not key.parent.exists()


def test_an_address_that_is_taken_is_an_error_and_no_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = serve("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.contract("D1.1")
async def test_it_answers_json_over_http_on_loopback(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/account", headers=standin.bearer("api_key"))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["team"]["tenantId"] == standin.team_id


async def test_split_gives_each_host_a_port_that_refuses_the_others(tmp_path: Path) -> None:
    async with running_standin(tmp_path, split=True) as standin:
        assert len(set(standin.urls.values())) == len(Host)
        assert (await standin.client.get("/v1/status")).status_code == 200
        elsewhere = await standin.client.get(standin.urls["ingress"] + "/v1/status")
        assert elsewhere.status_code == 404


async def test_accepted_connections_have_no_nagle_delay(standin: StandIn) -> None:
    # Without it a request takes 40 ms; the listening socket must say TCP for asyncio to set it.
    from agent.standin.serve import listen

    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


async def test_a_server_that_does_not_stop_has_been_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    async def stays(server: uvicorn.Server, sockets: object = None) -> None:
        server.started = True
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(server)

    monkeypatch.setattr("agent.standin.core.connections.Server.serve", stays)
    monkeypatch.setattr("agent.standin.serve._STOP_S", 0.01)
    async with serving(open_cloud()):
        pass
    assert len(ended) == 1


async def test_its_end_is_waited_for_and_not_looked_for_each_tenth_of_a_second(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    async with running_standin(tmp_path) as standin:
        assert (await standin.client.get("/v1/status")).status_code == 200
    assert max(slept) < 0.1


async def test_an_answer_that_is_cancelled_with_the_program_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun = asyncio.Event()

    async def waits(_scope: Scope, _receive: Receive, _send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr("agent.standin.serve._STOP_S", 0.01)
    before = asyncio.all_tasks()
    async with serving(open_cloud(), around=lambda _app: waits) as cloud:
        port = urlsplit(cloud.urls["api"]).port
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await begun.wait()
    writer.close()
    left = asyncio.all_tasks() - before
    for task in left:  # as asyncio.run does at its end
        task.cancel()
    await asyncio.wait(left)
    assert "ASGI" not in caplog.text
