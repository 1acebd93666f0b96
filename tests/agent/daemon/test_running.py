"""The agent, the stand-in and virtual kits as processes of their own, killed and restarted."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_agent import (
    RunningAgent,
    Served,
    agent_on,
    concern_of,
    kit_keys,
    kit_to_crash,
    serve,
    virtual_kit,
    write_profile,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

UUID = "56495254-8f0b-c5c9-e65b-36ed0cf0f295"  # made from the virtual kit's IMEI


@pytest.fixture
async def cloud(tmp_path: Path):
    return await serve("cloud", "serve", "--state", str(tmp_path / "cloud.state"))


@pytest.fixture
async def kit(tmp_path: Path):
    return await virtual_kit(tmp_path)


def environment(folder: Path, cloud: Served, *names: str, extra: str = "") -> dict[str, str]:
    kits = {name: kit_keys(folder, name) for name in names or ("kit",)}
    return write_profile(folder, cloud.ready, kits, extra)


async def listed_events(cloud: Served) -> list[dict[str, Any]]:
    ready = cloud.ready
    path = f"/api/v0/organizations/{ready['organization']}/projects/{ready['project']}/events"
    headers = {"Authorization": f"Bearer {ready['credentials']['organization_auth_token']}"}
    async with httpx.AsyncClient(base_url=ready["urls"]["api"], trust_env=False) as client:
        answer = await client.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["data"])


def waiting(status: dict[str, Any]) -> int:
    return int(status["outbox"]["waiting"])


def delivered(status: dict[str, Any]) -> int:
    return int(status["outbox"]["counts"].get("delivered", 0))


async def crashed(agent: RunningAgent) -> None:
    await agent.until_status(lambda status: concern_of(status, "kit", "console").get("dumps") == 1)


@pytest.mark.contract("C5", "C7")
async def test_a_kit_is_met_located_and_its_crash_delivered(tmp_path: Path, cloud: Served):
    async with (
        kit_to_crash(tmp_path) as kit,
        agent_on(environment(tmp_path, cloud)) as agent,
    ):
        await agent.until("kit", "link", "well")
        kit.crash()
        await crashed(agent)
        status = await agent.until_status(
            lambda status: (
                delivered(status) >= 4
                and not waiting(status)
                and "position" in concern_of(status, "kit", "location")
            )
        )
        link = concern_of(status, "kit", "link")
        assert link["device_id"] == UUID
        assert link["firmware"] == "mfw_nrf91x1_2.0.4"
        assert any("modem is off" in finding["what"] for finding in link["findings"])
        assert concern_of(status, "kit", "location")["position"]["with"] == "wifi"
        assert any(event["type"] == "trace" for event in await listed_events(cloud))
        assert await agent.stop() == 0


async def test_what_the_kit_said_survives_the_cloud_and_the_agent_being_killed(
    tmp_path: Path, cloud: Served
):
    async with kit_to_crash(tmp_path) as kit:
        async with agent_on(environment(tmp_path, cloud)) as agent:
            await agent.until("kit", "link", "well")
            await cloud.kill()
            kit.crash()
            await crashed(agent)
            await agent.until(None, "outbox", "trouble")
            status = json.loads((await agent.run("status", "--json")).out)
            kept = waiting(status)
            assert kept >= 2
            agent.process.kill()
            await agent.process.wait()
        again = await serve("cloud", "serve", "--state", str(tmp_path / "cloud.state"))
        async with agent_on(environment(tmp_path, again)) as agent:
            status = await agent.until_status(lambda status: not waiting(status))
            assert delivered(status) >= kept
    assert any(event["type"] == "trace" for event in await listed_events(again))


async def test_a_kit_that_is_unplugged_is_told_once_and_found_again(tmp_path: Path, cloud: Served):
    kit = await virtual_kit(tmp_path)
    async with agent_on(environment(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        await kit.end()
        await agent.until("kit", "link", "trouble")
        refused = await agent.run("modem", "at", "AT", "--port", str(tmp_path / "kit"))
        assert refused.code == 3
        assert "no link to the kit" in refused.err
        kit = await virtual_kit(tmp_path)
        await agent.until("kit", "link", "well")
        await agent.stop()
    about_link = [json.loads(line) for line in agent.log if '"link"' in line]
    told = [line["message"] for line in about_link if "lost" in line["message"]]
    assert len(told) == 1, agent.log
    assert any("works again" in line["message"] for line in about_link)


async def test_another_command_takes_its_turn_at_a_kit_that_is_held(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(environment(tmp_path, cloud)) as agent:
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
        assert concern_of(status, "kit", "link")["state"] == "well"


async def test_turns_are_taken_one_after_the_other(tmp_path: Path, cloud: Served, kit: Served):
    async with agent_on(environment(tmp_path, cloud)) as agent:
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
    async with agent_on(environment(tmp_path, cloud)) as agent:
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
    async with agent_on(environment(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        socket_path = next((Path(os.environ["CELLAGENT_STATE_DIR"]) / "run").glob("*.sock"))
        reader, writer = await asyncio.open_unix_connection(socket_path)
        writer.write(b'{"do":"lease","kit":"kit"}\n')
        assert json.loads(await reader.readline())["ok"]
        assert (await agent.run("reload")).code == 0, "a reload does not wait for the borrower"
        assert await agent.stop() == 0
        await reader.read()
        writer.close()


async def test_hold_lets_go_of_the_port_while_a_command_runs(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(environment(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        script = (
            "import os, fcntl, sys; port = os.open(os.environ['CELLAGENT_PORT'], os.O_RDWR);"
            "fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB); sys.exit(7)"
        )
        done = await agent.run("hold", "kit", "--", sys.executable, "-c", script)
        assert done.code == 7, done.err
        await agent.until("kit", "link", "waiting")
        await agent.until("kit", "link", "well")


async def test_two_kits_live_in_one_process(tmp_path: Path, cloud: Served):
    left = await virtual_kit(tmp_path, "left")
    await virtual_kit(tmp_path, "right", "--imei", "00101834000002")
    async with agent_on(environment(tmp_path, cloud, "left", "right")) as agent:
        status = await agent.until_status(
            lambda status: all(
                concern_of(status, name, "link").get("device_id") for name in ("left", "right")
            )
        )
        ids = {concern_of(status, name, "link")["device_id"] for name in ("left", "right")}
        assert len(ids) == 2
        await left.end()
        await agent.until("left", "link", "trouble")
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "right", "link")["state"] == "well"


async def test_a_reload_takes_kits_in_and_out_and_a_mistake_changes_nothing(
    tmp_path: Path, cloud: Served, kit: Served
):
    await virtual_kit(tmp_path, "right", "--imei", "00101834000002")
    async with agent_on(environment(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        environment(tmp_path, cloud, "kit", "right")
        agent.process.send_signal(signal.SIGHUP)
        await agent.until("right", "link", "well")
        wrong = tmp_path / "config.toml"
        wrong.write_text(wrong.read_text() + "\nmistake = 1\n")
        assert (await agent.run("reload")).code == 2
        environment(tmp_path, cloud, "right")
        assert (await agent.run("reload")).code == 0
        status = json.loads((await agent.run("status", "--json")).out)
        assert [each["name"] for each in status["kits"]] == ["right"]
        assert concern_of(status, "right", "link")["state"] == "well"


@pytest.mark.contract("D1.3", "D1.4")
async def test_a_kit_with_old_firmware_is_told_so_and_its_crashes_are_reported(
    tmp_path: Path, cloud: Served
):
    async with (
        kit_to_crash(tmp_path, "old-firmware") as kit,
        agent_on(environment(tmp_path, cloud)) as agent,
    ):
        await agent.until("kit", "location", "off")
        kit.crash()
        await crashed(agent)
        status = await agent.until_status(
            lambda status: delivered(status) >= 3 and not waiting(status)
        )
        (finding,) = [
            each
            for each in concern_of(status, "kit", "link")["findings"]
            if "1.2.8" in each["what"]
        ]
        assert "update the modem firmware" in finding["try"]
        assert "position" not in concern_of(status, "kit", "location")


async def test_a_second_agent_of_the_profile_is_refused_by_name(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(environment(tmp_path, cloud)) as agent:
        second = await agent.run("run")
        assert second.code != 0
        assert f"(PID {agent.process.pid})" in second.err
        assert (await agent.run("status")).code == 0, "the first one is not disturbed"
        other = await agent.run("status", "--profile", "standin")
        assert (other.code, "--profile bench" in other.err) == (3, True), other.err


async def test_no_agent_is_exit_code_3(tmp_path: Path):
    from command_line import cellagent

    done = await cellagent("status", "--json")
    assert done.code == 3
    assert done.lines[0]["error"]["kind"] == "not-running"


async def test_a_recorded_session_is_run_for_what_it_holds(tmp_path: Path, cloud: Served):
    root = Path(__file__).parents[3]
    session = root / "fixtures" / "transcripts" / "identity.transcript"
    where = environment(tmp_path, cloud)
    async with agent_on(where, "--port", f"replay:{session}") as agent:
        await agent.until("kit", "link", "well")
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "kit", "link")["firmware"].startswith("mfw_")
        assert await agent.stop() == 0


async def test_what_it_logs_names_kit_and_concern_and_no_secret(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(environment(tmp_path, cloud), "-vv") as agent:
        await agent.until("kit", "location", "well")
        await agent.stop()
    assert any(json.loads(line)["kit"] == "kit" for line in agent.log)
    secrets = [value for name, value in cloud.ready["credentials"].items() if "file" not in name]
    text = "\n".join(agent.log) + json.dumps(agent.told)
    assert not [secret for secret in secrets if secret in text and "@" not in secret]


async def test_where_a_socket_has_no_room_a_port_with_a_token_serves(
    tmp_path: Path, cloud: Served, kit: Served
):
    state = tmp_path / ("a-long-name-" * 10)
    where = {**environment(tmp_path, cloud), "CELLAGENT_STATE_DIR": str(state)}
    async with agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        (place,) = (state / "run").iterdir()
        assert place.suffix == ".port"
        assert place.stat().st_mode & 0o777 == 0o600
        known = json.loads(place.read_text())
        done = await agent.run("modem", "at", "AT+CGMR", "--port", str(tmp_path / "kit"), "--json")
        assert done.lines[0]["lines"] == ["mfw_nrf91x1_2.0.4"], done.err
        reader, writer = await asyncio.open_connection("127.0.0.1", known["port"])
        writer.write(b'{"do":"status","token":"guessed"}\n')
        assert "error" in json.loads(await reader.readline())
        writer.close()
        assert await agent.stop() == 0
        assert not place.exists()


@pytest.mark.parametrize(
    "request_line", [b"\n", b"nonsense\n", b"[]\n", b'{"do":"dance"}\n', b'{"do":' + b"[" * 60000]
)
async def test_a_malformed_request_is_refused_and_disturbs_nobody(
    tmp_path: Path, cloud: Served, kit: Served, request_line: bytes
):
    async with agent_on(environment(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        socket_path = next((Path(os.environ["CELLAGENT_STATE_DIR"]) / "run").glob("*.sock"))
        reader, writer = await asyncio.open_unix_connection(socket_path)
        writer.write(request_line)
        writer.write_eof()
        assert json.loads(await reader.readline())["error"]["kind"] == "usage"
        writer.close()
        assert (await agent.run("status")).code == 0
