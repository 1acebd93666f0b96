"""Every command that speaks AT works while the agent holds the kit: it gets a lease."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.fota.journal import journal_folder, sole_worker
from at.protocol.line.resynchronisation import POISON
from at.virtual.server.runner import ModemRunner
from tests.support.commands.running_agent import (
    RunningAgent,
    Served,
    agent_on,
    concern_of,
    kit_to_crash,
    profile_with,
    serve,
    virtual_kit,
)
from tests.support.fota.signed_images import signed_image
from tests.support.fota.update_offers import (
    DEVICE,
    device_profile,
    job_status,
    offer_update,
    onboard_device,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

# What a program does with the port that it is given: ask one thing, read its answer.
SESSION = """
import os, termios, tty
port = os.open(os.environ["CELLAGENT_PORT"], os.O_RDWR | os.O_NOCTTY)
tty.setraw(port, termios.TCSANOW)
os.write(port, b"AT+CGMM\\r")
heard = b""
while b"OK" not in heard:
    heard += os.read(port, 100)
"""


@pytest.mark.parametrize(
    "words",
    [
        ("modem", "check"),
        ("modem", "at", "AT+CFUN=1", "AT+CESQ"),
        ("modem", "term"),
        ("modem", "signal"),
        ("modem", "jwt"),
        ("scan", "cells"),
        ("locate",),
        ("assist", "agnss"),
        ("fota", "check"),
        ("ports",),
    ],
    ids=" ".join,
)
async def test_a_command_takes_its_turn(agent: RunningAgent, words: tuple[str, ...]):
    # With no --port: the profile has one kit, and the agent holds it.
    assert (await agent.run("modem", "at", "AT+CFUN=1")).code == 0
    if words[0] == "fota":  # the account has jobs for no other kit
        onboarded = await agent.run("provision", "run", "--registration", "onboard")
        assert onboarded.code == 0, onboarded.err
    done = await agent.run(*words)
    assert done.code == 0, done.err


async def test_ports_shows_what_the_agent_knows_of_the_port_that_it_holds(
    agent: RunningAgent, tmp_path: Path
):
    port = str(tmp_path / "kit")
    for words in (("ports",), ("ports", "--port", port)):
        done = await agent.run(*words, "--json")
        assert done.code == 0
        (told,) = [line for line in done.lines if line["port"] == port]
        assert (told["role"], told["answers"], told["dialect"]) == ("at", True, "at-host")
        assert told["firmware"] == "mfw_nrf91x1_2.0.4"
        assert f"PID {agent.process.pid}" in told["reason"]


async def test_a_board_is_planned_and_provisioned_while_the_agent_holds_it(
    agent: RunningAgent, tmp_path: Path
):
    port = str(tmp_path / "kit")
    planned = await agent.run("provision", "plan", port, "--json")
    assert planned.lines[0]["writes"] == 1, planned.err
    done = await agent.run("provision", "run", port, "--set-clock", "--json")
    assert done.lines[0]["outcome"] == "done", done.err
    again = await agent.run("provision", "run", port, "--json")
    assert again.lines[0]["outcome"] == "unchanged", again.err
    status = json.loads((await agent.run("status", "--json")).out)
    assert concern_of(status, "kit", "link")["phase"] == "well"


async def test_an_update_is_pulled_by_hand_where_the_agent_pulls_none(standin: Any, tmp_path: Path):
    await onboard_device(standin)
    await virtual_kit(tmp_path, "kit", "--dialect", "serial-modem")
    where = device_profile(tmp_path, standin, "[profiles.bench.fota]\ninterval_s = 0.0\n")
    async with agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 30).read_bytes()
        job_id = await offer_update(standin, image, "v2.0.1")
        # The device's id stands in the profile's table of kits.
        done = await agent.run("fota", "pull", "--json")
        assert (done.lines[-1]["job"], done.lines[-1]["status"]) == (job_id, "SUCCEEDED"), done.err
        assert await job_status(standin, job_id) == "SUCCEEDED"
        assert (await agent.run("modem", "at", "AT+CGMM")).code == 0


async def test_a_look_at_jobs_gives_the_modem_back_while_another_works_on_them(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    where = device_profile(tmp_path, standin, "[profiles.bench.fota]\ninterval_s = 0.0\n")
    folder = journal_folder(Path(os.environ["CELLAGENT_STATE_DIR"]), DEVICE)
    heard = bytearray()
    lent_again = asyncio.Event()

    def hearing(kit: ModemRunner) -> Callable[[bytes], None]:
        def receive(data: bytes) -> None:
            heard.extend(data)
            if (
                heard.count(POISON) == 3
            ):  # a lease begins with one, and the agent sends one after it
                lent_again.set()
            kit.receive(data)

        return receive

    async with kit_to_crash(tmp_path, receives=hearing), agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        # As the agent does where it looks: it has the jobs, and asks the modem next.
        async with sole_worker(folder, patience_s=0):
            heard.clear()
            looking = asyncio.create_task(agent.run("fota", "check"))
            looking.add_done_callback(lambda _: lent_again.set())
            await lent_again.wait()
        done = await looking
        assert done.code == 0, done.err


async def test_a_session_is_recorded_while_the_agent_holds_the_kit(
    agent: RunningAgent, tmp_path: Path
):
    file = tmp_path / "session.transcript"
    done = await agent.run("modem", "record", str(file), "--", sys.executable, "-c", SESSION)
    assert done.code == 0, done.err
    assert "the running agent lends the modem" in done.err
    lines = [line.partition(" ")[2] for line in file.read_text().splitlines() if line[0] == "@"]
    assert lines == ["> AT+CGMM", "< nRF9161-LACA", "< OK"]


async def test_a_recorder_that_is_killed_gives_the_modem_back_and_leaves_nothing_for_long(
    agent: RunningAgent, tmp_path: Path
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    agent.environment["TMPDIR"] = str(temporary)
    recorder = await serve(
        "modem", "record", str(tmp_path / "session.transcript"), environment=agent.environment
    )
    waiting = asyncio.ensure_future(agent.run("modem", "at", "AT+CGMM"))
    await agent.until_status(
        lambda status: "lent to" in concern_of(status, "kit", "link").get("busy_with", "")
    )
    assert not waiting.done()
    await recorder.kill()
    done = await waiting
    assert (done.code, done.out.split()) == (0, ["nRF9161-LACA", "OK"]), done.err
    done = await agent.run("modem", "record", str(tmp_path / "next.transcript"), "--", "true")
    assert (done.code, [*temporary.iterdir()]) == (0, []), done.err


async def test_a_kit_that_is_busy_for_too_long_is_a_busy_board(
    agent: RunningAgent, monkeypatch: pytest.MonkeyPatch
):
    from agent.daemon.control import leased_transport
    from agent.daemon.control.client import AgentConnection, AgentRefused
    from agent.daemon.control.leased_transport import held_kits
    from agent.daemon.control.protocol import ErrorObject
    from at.protocol.errors import PortBusy

    (kit,) = await held_kits(Path(os.environ["CELLAGENT_STATE_DIR"]))

    async def refused(_self: AgentConnection, _kind: type, _timeout_s: float) -> dict[str, object]:
        raise AgentRefused(ErrorObject(3, "kit-busy", "busy: an update", "w"))

    monkeypatch.setattr(AgentConnection, "answer", refused)
    with pytest.raises(PortBusy, match="an update"):
        await leased_transport.LeasedTransport(kit).open(None)  # type: ignore[arg-type]


async def test_another_command_takes_its_turn_at_a_kit_that_is_held(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        port = str(tmp_path / "kit")
        done = await agent.run("modem", "at", "AT+CFUN=1", "AT+CGMR", "--port", port, "--json")
        assert done.code == 0, done.err
        assert done.lines[1]["lines"] == ["mfw_nrf91x1_2.0.4"]
        # The agent's own link is in order again, and hears what the command changed.
        status = await agent.until_status(
            lambda status: concern_of(status, "kit", "link").get("registration") == 1
        )
        assert "findings" not in concern_of(status, "kit", "link")
        assert concern_of(status, "kit", "link")["phase"] == "well"


async def test_turns_are_taken_one_after_the_other(tmp_path: Path, cloud: Served, kit: Served):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        port = str(tmp_path / "kit")
        all_done = await asyncio.gather(
            *(agent.run("modem", "at", "AT+CGSN=1", "--port", port, "--json") for _ in range(4))
        )
        assert {done.code for done in all_done} == {0}
        assert len({tuple(done.lines[0]["lines"]) for done in all_done}) == 1


async def test_a_borrower_that_is_killed_leaves_the_link_in_order(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        socket_path = next((Path(os.environ["CELLAGENT_STATE_DIR"]) / "run").glob("*.sock"))
        assert socket_path.stat().st_mode & 0o777 == 0o600
        reader, writer = await asyncio.open_unix_connection(socket_path)
        writer.write(b'{"do":"lease","kit":"kit"}\n')
        assert json.loads(await reader.readline())["ok"]
        writer.write(b'AT%CMNG=0,1,0,"half a comma')  # an open quote
        await writer.drain()
        writer.transport.abort()
        port = str(tmp_path / "kit")
        done = await agent.run("modem", "at", "AT+CGMR", "--port", port, "--json")
        assert done.lines[0]["lines"] == ["mfw_nrf91x1_2.0.4"], done.err


async def test_it_ends_in_time_while_a_modem_is_lent(tmp_path: Path, cloud: Served, kit: Served):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        socket_path = next((Path(os.environ["CELLAGENT_STATE_DIR"]) / "run").glob("*.sock"))
        reader, writer = await asyncio.open_unix_connection(socket_path)
        writer.write(b'{"do":"lease","kit":"kit"}\n')
        assert json.loads(await reader.readline())["ok"]
        assert (await agent.run("reload")).code == 0, "a reload does not wait for the borrower"
        assert await agent.stop() == 0
        await reader.read()
        writer.close()
