"""Where the agent listens if the path of a socket would be too long."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from agent.daemon.control.protocol import AnyRequest
from agent.daemon.control.request_server import Client, RequestServer
from agent.daemon.control.socket import ControlSocket, control_socket_of, control_sockets
from tests.support.commands.running_agent import Served, agent_on, profile_with

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


async def test_where_a_socket_has_no_room_a_port_with_a_token_serves(
    tmp_path: Path, cloud: Served, kit: Served
):
    state = tmp_path / ("a-long-name-" * 10)
    where = {**profile_with(tmp_path, cloud), "CELLAGENT_STATE_DIR": str(state)}
    async with agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        (place,) = (state / "run").iterdir()
        assert place.suffix == ".port"
        assert place.stat().st_mode & 0o777 == 0o600
        known = json.loads(place.read_text())
        done = await agent.run("modem", "at", "AT+CGMR", "--port", str(tmp_path / "kit"), "--json")
        assert done.lines[0]["lines"] == ["mfw_nrf91x1_2.0.4"], done.err
        for given in ({}, *({"token": text} for text in ("", "guessed", known["token"][:-1]))):
            reader, writer = await asyncio.open_connection("127.0.0.1", known["port"])
            writer.write(json.dumps({"do": "status", **given}).encode() + b"\n")
            assert "the token" in json.loads(await reader.readline())["error"]["message"]
            writer.close()
        assert await agent.stop() == 0
        assert not place.exists()


@pytest.mark.parametrize("name", ["lab.sock", "lab.port"])
async def test_an_agent_that_ends_leaves_the_socket_of_another_one(
    tmp_path: Path, name: str
) -> None:
    """Its state folder was removed, so that nobody could ask it, and another agent was started."""

    async def answer(_request: AnyRequest, _client: Client) -> None:
        """Nobody asks."""

    place = ControlSocket(tmp_path / name)
    first, second = RequestServer(place, answer), RequestServer(place, answer)
    await first.start()
    place.path.unlink()
    await second.start()
    await first.stop()
    assert place.is_listening()
    await second.stop()
    assert not place.path.exists()


async def test_connections_that_say_nothing_leave_the_program_its_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    monkeypatch.setattr("agent.listening.MOST_CONNECTIONS", 4)
    place = ControlSocket(tmp_path / "lab.port")
    async with await place.listen(serve, "a token", limit=100), asyncio.timeout(30):
        silent = [await place.connect() for _ in range(6)]
        assert [await reader.read() for reader, _ in silent[:2]] == [b"", b""]
        for _, writer in silent:
            writer.close()


def test_the_agent_of_a_profile_is_found_whatever_that_is_called(tmp_path: Path) -> None:
    names = [".hidden", "a/b", "lab.v2"]
    (tmp_path / "run").mkdir(0o700)
    for name in names:
        control_socket_of(tmp_path, name).path.touch()
    assert sorted(unquote(each.path.stem) for each in control_sockets(tmp_path)) == names
