"""Requests on the control socket: the outbox, a hold, and what is no request."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.config.profile import OutboxSettings
from agent.daemon.control.request_server import Client
from agent.daemon.control.server import ControlServer
from agent.daemon.control.socket import ControlSocket
from agent.daemon.outbox_delivery import OutboxDelivery
from agent.daemon.snapshot import (
    AgentProcess,
    AgentStatus,
    Headline,
    HousekeepingStatus,
    OutboxStatus,
    Phase,
    State,
)
from agent.daemon.status import StatusRegistry
from agent.errors import Unreachable
from agent.outbox import Outbox, delivery_loop
from agent.outbox.items import Item
from tests.support.commands.command_line import cellagent
from tests.support.commands.running_agent import (
    Served,
    agent_on,
    concern_of,
    profile_with,
    serve,
    write_profile,
)
from tests.support.harness import virtual_time
from tests.support.outbox.outboxes import event

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals to processes")

NAMES = ("--device-serial", "kit-1", "--hardware-version", "nrf9161dk", "--software-type", "main")
EVENT = ("report", "event", *NAMES, "--software-version", "1.0.0", "--metric", "number=1")


async def test_what_waits_is_listed_dropped_and_sent_by_the_agent(tmp_path: Path) -> None:
    cloud = await serve("cloud", "serve")
    environment = write_profile(tmp_path, cloud.ready, {"kit": {"port": str(tmp_path / "kit")}})
    await cloud.kill()  # so that events wait
    async with agent_on(environment) as agent:
        for _ in range(2):
            assert (await agent.run(*EVENT)).code == 0
        await agent.until_status(lambda status: status["outbox"]["waiting"] == 2)
        listed = await agent.run("outbox", "list", "--json")
        *items, summary = listed.lines
        assert (listed.code, len(items), summary["summary"]["waiting"]) == (0, 2, 2)
        none = await agent.run("outbox", "list", "--limit", "0", "--json")
        assert [*map(list, none.lines)] == [["summary"]]
        dropped = {"sending": 1}
        while dropped["sending"]:  # nothing is dropped amid a try
            (dropped,) = (await agent.run("outbox", "drop", str(items[0]["id"]), "--json")).lines
        assert dropped == {"dropped": 1, "sending": 0}
        flushed = await agent.run("outbox", "flush", "--json")
        assert flushed.lines == [{"delivered": None, "waiting": 1, "parked": 0}]
        refused = await agent.run("outbox", "drop", "--json")
        assert (refused.code, refused.lines[0]["error"]["kind"]) == (2, "usage")
        assert await agent.stop() == 0


async def test_hold_lets_go_of_the_port_while_a_command_runs(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        script = (
            "import os, fcntl, sys; port = os.open(os.environ['CELLAGENT_PORT'], os.O_RDWR);"
            "fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB); sys.exit(7)"
        )
        done = await agent.run("hold", "kit", "--", sys.executable, "-c", script)
        assert done.code == 7, done.err
        elsewhere = {**agent.environment, "CELLAGENT_PORT": "/dev/of-another"}
        other = await cellagent("hold", "--", sys.executable, "-c", script, environment=elsewhere)
        assert (other.code, "no kit '/dev/of-another'" in other.err) == (2, True)
        await agent.until("kit", "link", "waiting")
        await agent.until("kit", "link", "well")


async def test_a_hold_that_is_killed_lasts_until_its_program_ends(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        holder = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent", "hold", "kit", "--"),
            *("sh", "-c", "echo begun; read line"),
            env={**os.environ, **agent.environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert await holder.stdout.readline() == b"begun\n"
        await agent.until("kit", "link", "waiting")
        os.kill(holder.pid, signal.SIGKILL)
        # The agent would see the end of the connection before it sees this request.
        (status,) = (await agent.run("status", "--json")).lines
        assert concern_of(status, "kit", "link").get("held_by", "").startswith("sh of ")
        holder.stdin.close()
        await agent.until("kit", "link", "well")
        await holder.wait()


async def test_a_hold_ends_with_its_program_whatever_that_left_running(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        pid = tmp_path / "pid"
        script = f"sleep 600 </dev/null >/dev/null 2>&1 & echo $! > {pid}"
        assert (await agent.run("hold", "kit", "--", "sh", "-c", script)).code == 0
        try:
            await agent.until("kit", "link", "waiting")
            await agent.until("kit", "link", "well")
        finally:
            os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    "request_line", [b"\n", b"nonsense\n", b"[]\n", b'{"do":"dance"}\n', b'{"do":' + b"[" * 60000]
)
async def test_a_malformed_request_is_refused_and_disturbs_nobody(
    tmp_path: Path, cloud: Served, kit: Served, request_line: bytes
):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        socket_path = next((Path(os.environ["CELLAGENT_STATE_DIR"]) / "run").glob("*.sock"))
        reader, writer = await asyncio.open_unix_connection(socket_path)
        writer.write(request_line)
        writer.write_eof()
        assert json.loads(await reader.readline())["error"]["kind"] == "usage"
        writer.close()
        assert "mfw_nrf91x1" in (await agent.run("status", "--json")).out


async def test_what_a_client_asked_for_that_has_gone_meanwhile_is_not_done(tmp_path: Path):
    asked: list[str] = []

    async def reload() -> None:
        asked.append("reload")

    agent: Any = SimpleNamespace(registry=StatusRegistry(), reload=reload)
    path = tmp_path / "agent.sock"
    server = ControlServer(agent, ControlSocket(path))
    await server.start()

    def request(*, then_close: bool) -> socket.socket:
        # Without a turn of the loop, as where the agent is stopped: it sees all of it at once.
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(path))
        client.sendall(b'{"do":"reload"}\n')
        client.close() if then_close else client.shutdown(socket.SHUT_WR)
        return client

    request(then_close=True)
    waiting = request(then_close=False)
    reader, writer = await asyncio.open_connection(sock=waiting)
    assert json.loads(await reader.readline()) == {"ok": True}, "it writes no more, but it reads"
    assert asked == ["reload"]
    writer.close()
    await server.stop()


async def test_with_what_is_dropped_its_trouble_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(delivery_loop, "IDLE_S", 3600.0)  # the next look of its own
    looks: list[Outbox] = []
    monkeypatch.setattr(delivery_loop, "collect", looks.append)

    class Away:
        async def send(self, _items: Sequence[Item]) -> None:
            raise Unreachable("nothing listens there")

    registry = StatusRegistry()
    concern = registry.add_concern(OutboxStatus)
    delivery = OutboxDelivery(tmp_path / "outbox", OutboxSettings(min_free_bytes=0), concern)
    agent: Any = SimpleNamespace(registry=registry, delivery=delivery)
    server = ControlServer(agent, ControlSocket(tmp_path / "agent.sock"))
    await server.start()
    try:
        await delivery.outbox.aput([event(1)])
        await delivery.start(Away())
        async with asyncio.timeout(60):
            while concern.phase is not Phase.TROUBLE:
                await registry.changed()
            while len(looks) < 2:  # the last one before it waits for the next try
                await delivery.outbox.atransact(lambda _store: None)
            for _ in range(3):
                await delivery.outbox.atransact(lambda _store: None)
            reader, writer = await asyncio.open_unix_connection(tmp_path / "agent.sock")
            writer.write(b'{"do":"outbox","what":"drop","everything":true}\n')
            assert json.loads(await reader.readline())["outbox"] == {"dropped": 1, "sending": 0}
            writer.close()
            while concern.phase is not Phase.WELL:
                await registry.changed()
    finally:
        await server.stop()
        await delivery.stop()
        delivery.close()


async def test_a_window_on_the_status_leaves_no_task_behind_when_the_agent_stops(tmp_path: Path):
    registry = StatusRegistry()

    async def status() -> AgentStatus:
        process = AgentProcess(1, "1.0", "lab", registry.now())
        line = Headline(State.WELL, "0 kits, all is well")
        outbox = registry.add_concern(OutboxStatus).status
        return AgentStatus(
            process, line, outbox, registry.add_concern(HousekeepingStatus).status, []
        )

    agent: Any = SimpleNamespace(registry=registry, status=status)
    server = ControlServer(agent, ControlSocket(tmp_path / "agent.sock"))
    await server.start()
    before = asyncio.all_tasks()
    reader, writer = await asyncio.open_unix_connection(tmp_path / "agent.sock")
    writer.write(b'{"do":"watch"}\n')
    assert json.loads(await reader.readline())["status"]["kits"] == []
    await server.stop()
    writer.close()
    assert asyncio.all_tasks() == before


def test_who_does_not_read_what_the_modem_sends_is_cut_off() -> None:
    done: list[str] = []
    waits = iter([1024 * 1024, 1024 * 1024 + 1])
    transport = SimpleNamespace(
        get_write_buffer_size=lambda: next(waits), abort=lambda: done.append("cut off")
    )
    writer: Any = SimpleNamespace(
        transport=transport, is_closing=lambda: False, write=lambda data: done.append(data.decode())
    )
    reader: Any = None  # nothing is read
    client = Client(reader, writer)
    for _ in range(2):
        client.data_received(b"OK")
    assert done == ["OK", "cut off"]


def test_what_the_holder_of_a_lease_writes_is_read_as_fast_as_the_modem_takes_it() -> None:
    """From one that takes nothing, the lease ends: it may be gone, which only reading tells."""

    async def lent() -> None:
        reader, taken = asyncio.StreamReader(), list[bytes]()

        async def write(data: bytes) -> None:
            taken.append(data)
            await asyncio.sleep(30.0 if len(taken) < 3 else 3600.0)

        for _ in range(5):
            reader.feed_data(bytes(4096))
        writer: Any = None  # nothing is written
        with pytest.raises(TimeoutError):
            await Client(reader, writer).write_through(write)
        assert asyncio.get_running_loop().time() == 120.0
        assert len(taken) == 3

    virtual_time.run(lent())
