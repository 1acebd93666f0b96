"""The whole agent in a process of its own: its kits, its profile, what it logs."""

from __future__ import annotations

import json
import signal
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.config import load
from agent.daemon.agent import Agent
from agent.daemon.snapshot import OutboxStatus, Phase, State
from tests.support.commands.running_agent import (
    RunningAgent,
    Served,
    agent_on,
    concern_of,
    profile_with,
    virtual_kit,
)
from tests.support.keys.key_files import self_signed

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


async def test_two_kits_live_in_one_process(tmp_path: Path, cloud: Served):
    left = await virtual_kit(tmp_path, "left")
    await virtual_kit(tmp_path, "right", "--imei", "00101834000002")
    async with agent_on(profile_with(tmp_path, cloud, "left", "right")) as agent:
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
        assert concern_of(status, "right", "link")["phase"] == "well"


async def test_two_kits_that_say_that_they_are_one_device_are_told(tmp_path: Path, cloud: Served):
    uuid = "50503041-3633-4261-803d-1e2b8f70111a"
    first = await virtual_kit(tmp_path, "left", "--uuid", uuid)
    async with agent_on(profile_with(tmp_path, cloud, "left", "right")) as agent:
        await agent.until("left", "link", "well")
        await virtual_kit(tmp_path, "right", "--imei", "00101834000002", "--uuid", uuid)
        said = await agent.until_status(
            lambda status: f"left is the device {uuid}, too" in json.dumps(status)
        )
        (finding,) = (
            each
            for each in concern_of(said, "right", "link")["findings"]
            if "left is" in each["what"]
        )
        assert "correct kits.right.device_id where it is set" in finding["try"]
        await first.end()
        await agent.until("left", "link", "trouble")


async def test_a_reload_takes_kits_in_and_out_and_a_mistake_changes_nothing(
    tmp_path: Path, cloud: Served, kit: Served
):
    await virtual_kit(tmp_path, "right", "--imei", "00101834000002")
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        await agent.until("kit", "link", "well")
        profile_with(tmp_path, cloud, "kit", "right")
        agent.process.send_signal(signal.SIGHUP)
        await agent.until("right", "link", "well")
        wrong = tmp_path / "config.toml"
        wrong.write_text(wrong.read_text() + "\nmistake = 1\n")
        assert (await agent.run("reload")).code == 2
        profile_with(tmp_path, cloud, "right")
        assert (await agent.run("reload")).code == 0
        status = json.loads((await agent.run("status", "--json")).out)
        assert [each["name"] for each in status["kits"]] == ["right"]
        assert concern_of(status, "right", "link")["phase"] == "well"


async def test_a_reload_serves_the_page_as_the_profile_then_has_it(
    tmp_path: Path, cloud: Served, kit: Served
):
    certificate = tmp_path / "page.pem"
    listen = '[profiles.bench.page]\nlisten = "127.0.0.1:0"\n'

    async def reloaded(agent: RunningAgent, page: str) -> int:
        profile_with(tmp_path, cloud)
        config = tmp_path / "config.toml"
        config.write_text(f"{config.read_text()}\n{page}")
        return (await agent.run("reload")).code

    async def link(agent: RunningAgent) -> str:
        done = await agent.run("page", "--json")
        assert done.code == 0, done.out + done.err
        return str(json.loads(done.out)["link"])

    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        assert await reloaded(agent, listen) == 0
        assert (await link(agent)).startswith("http://127.0.0.1:")
        secured = f'{listen}certificate_file = "{certificate}"\n'
        certificate.write_bytes(self_signed("first.example"))
        assert await reloaded(agent, secured) == 0
        first = await link(agent)
        assert first.startswith("https://first.example:")
        assert await reloaded(agent, secured) == 0
        assert first.partition("?")[0] == (await link(agent)).partition("?")[0], "as before"
        certificate.write_bytes(b"none")
        assert await reloaded(agent, secured) == 2
        assert (await link(agent)).startswith("https://first.example:")
        certificate.write_bytes(self_signed("second.example"))
        assert await reloaded(agent, secured) == 0
        assert (await link(agent)).startswith("https://second.example:")
        assert await agent.stop() == 0


async def test_a_status_just_after_the_clock_was_set_tells_no_age_by_the_old_one(
    private_home: Path, monkeypatch: pytest.MonkeyPatch
):
    async def nothing_waits(now: datetime) -> tuple[OutboxStatus, dict[str, object]]:
        return OutboxStatus(State.WELL, Phase.WELL, None, None, 0, now), {}

    def an_hour_ahead() -> float:
        return time.time() + 3600

    agent = Agent(lambda: load(port="virtual:"))
    delivery: Any = SimpleNamespace(status=nothing_waits, try_now=lambda: None)
    agent.delivery = delivery
    agent.registry.since -= timedelta(minutes=1)
    agent.registry.clock = an_hour_ahead
    clocks = SimpleNamespace(time=an_hour_ahead, monotonic=time.monotonic)
    monkeypatch.setattr("agent.daemon.agent.time", clocks)
    monkeypatch.setattr("agent.daemon.agent._KNOWS_SLEEP", True)
    up = agent.registry.now() - (await agent.status()).agent.since
    assert up.total_seconds() < 1800


async def test_a_second_agent_of_the_profile_is_refused_by_name(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(profile_with(tmp_path, cloud)) as agent:
        second = await agent.run("run")
        assert second.code == 3
        assert f"(PID {agent.process.pid})" in second.err
        assert (await agent.run("status")).code == 0, "the first one is not disturbed"
        other = await agent.run("status", "--profile", "standin")
        assert (other.code, "--profile bench" in other.err) == (3, True), other.err


async def test_a_recorded_session_is_run_for_what_it_holds(tmp_path: Path, cloud: Served):
    root = Path(__file__).parents[3]
    session = root / "fixtures" / "transcripts" / "identity.transcript"
    where = profile_with(tmp_path, cloud)
    async with agent_on(where, "--port", f"replay:{session}") as agent:
        await agent.until("kit", "link", "well")
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "kit", "link")["firmware"].startswith("mfw_")
        assert await agent.stop() == 0


async def test_what_it_logs_names_kit_and_concern_and_no_secret(
    tmp_path: Path, cloud: Served, kit: Served
):
    async with agent_on(profile_with(tmp_path, cloud), "-vv") as agent:
        await agent.until("kit", "location", "well")
        await agent.stop()
    assert any(json.loads(line)["kit"] == "kit" for line in agent.log)
    secrets = [value for name, value in cloud.ready["credentials"].items() if "file" not in name]
    text = "\n".join(agent.log) + json.dumps(agent.output)
    assert not [secret for secret in secrets if secret in text and "@" not in secret]
