"""Events of the agent's own: the agent, a cloud and a virtual kit, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from at.virtual.server.pty import PtyServer
from tests.support.cloud.observability import with_token
from tests.support.commands.running_agent import (
    RunningAgent,
    agent_on,
    concern_of,
    kit_keys,
    kit_to_crash,
    serve,
    virtual_kit,
    write_profile,
)
from tests.support.fota.signed_images import signed_image
from tests.support.fota.update_offers import (
    device_profile,
    job_status,
    offer_update,
    onboard_device,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

VERIFIED_ONLY = '[profiles.bench.fota]\nrequire = "verified"'
NO_ROOM = "[profiles.bench.outbox]\nmin_free_bytes = 1_000_000_000_000_000"
SECOND = timedelta(seconds=1)  # to which the journal of updates keeps times


def own(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the agent's own events, the oldest first."""
    found = [event for event in events if "agent_event" in (event["user_info"] or {})]
    return sorted(found, key=lambda event: event["captured_date"])


def told(events: list[dict[str, Any]]) -> list[str]:
    return [event["user_info"]["agent_event"] for event in events]


def when(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["captured_date"])


async def until_told(agent: RunningAgent, **counts: int) -> None:
    """Wait until so much has happened, and nothing waits for delivery any more."""

    def seen(status: dict[str, Any]) -> bool:
        events = concern_of(status, "kit", "events")
        counted = {name.removesuffix("_count"): events.get(name) for name in events}
        return not status["outbox"]["waiting"] and counted.items() >= counts.items()

    await agent.until_status(seen)


async def killed(agent: RunningAgent) -> None:
    agent.process.kill()
    await agent.process.wait()


async def listed(ready: dict[str, Any]) -> list[dict[str, Any]]:
    path = f"/api/v0/organizations/{ready['organization']}/projects/{ready['project']}/events"
    headers = {"Authorization": f"Bearer {ready['credentials']['organization_auth_token']}"}
    async with httpx.AsyncClient(base_url=ready["urls"]["api"], trust_env=False) as client:
        answer = await client.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return own(answer.json()["data"])


@contextlib.asynccontextmanager
async def cloud_on(folder: Path) -> AsyncIterator[dict[str, Any]]:
    served = await serve("cloud", "serve", "--state", str(folder / "cloud.state"))
    try:
        yield served.ready
    finally:
        await served.kill()


def environment(folder: Path, ready: dict[str, Any], extra: str = "") -> dict[str, str]:
    return write_profile(folder, ready, {"kit": kit_keys(folder)}, extra)


@pytest.mark.contract("O3.4", "C7")
async def test_a_pulled_cable_is_one_event_each_time_it_is_pulled(tmp_path: Path):
    async with cloud_on(tmp_path) as cloud:
        kit = await virtual_kit(tmp_path)
        async with agent_on(environment(tmp_path, cloud)) as agent:
            await agent.until("kit", "link", "well")
            before = datetime.now(UTC)
            await kit.kill()
            await agent.until("kit", "link", "trouble")
            after = datetime.now(UTC)
            await until_told(agent, link_lost=1)
            (lost,) = await listed(cloud)
            assert before - SECOND <= when(lost) <= after
            assert "was lost" in lost["user_info"]["detail"]
            assert lost["type"] == "trace"
            assert lost["event_info"]["reason"] == 0x8000
            await killed(agent)
        async with agent_on(environment(tmp_path, cloud)) as agent:
            await agent.until("kit", "link", "trouble")  # it is still away: that is known
            kit = await virtual_kit(tmp_path)
            await agent.until("kit", "link", "well")
            await kit.kill()
            await until_told(agent, link_lost=1)
            assert told(await listed(cloud)) == ["link lost", "link lost"]
            await agent.stop()


async def test_a_kit_that_is_let_go_of_on_purpose_is_no_event(tmp_path: Path):
    async with cloud_on(tmp_path) as cloud:
        kit = await virtual_kit(tmp_path)
        async with agent_on(environment(tmp_path, cloud)) as agent:
            await agent.until("kit", "link", "well")
            held = await agent.run("hold", "kit", "--", sys.executable, "-c", "pass")
            assert held.code == 0, held.err
            await agent.until("kit", "link", "well")
            assert (await agent.run("reload")).code == 0
            await agent.stop()
        async with agent_on(environment(tmp_path, cloud)) as agent:
            await agent.until("kit", "link", "well")
            await kit.kill()
            await until_told(agent, link_lost=1)
            assert told(await listed(cloud)) == ["link lost"]
            await agent.stop()


async def by_command(agent: RunningAgent, folder: Path) -> None:
    done = await agent.run("modem", "at", "AT#XRESET", "--port", str(folder / "kit"))
    assert done.code in {0, 1, 3}, done.err  # it may be told of the restart


@pytest.mark.contract("O3.4")
async def test_a_restart_of_the_modem_is_one_event_though_the_cable_stays(tmp_path: Path):
    async with cloud_on(tmp_path) as cloud:
        await virtual_kit(tmp_path, "kit", "--dialect", "serial-modem")
        async with agent_on(environment(tmp_path, cloud)) as agent:
            await agent.until("kit", "link", "well")
            before = datetime.now(UTC)
            await by_command(agent, tmp_path)
            await until_told(agent, modem_reset=1)
            (reset,) = await listed(cloud)
            assert before - SECOND <= when(reset) <= datetime.now(UTC)
            assert told([reset]) == ["modem reset"]
            await agent.stop()


@pytest.mark.parametrize(
    "lines",
    [
        ["#XMODEM: FAULT,0x2,0x4b1", "#XMODEM: INIT,0"],
        ["*** Booting MCUboot v2.1.0 ***", "*** Booting nRF Connect SDK v3.1.1 ***", "Ready"],
    ],
    ids=["a fault of the modem", "a boot notice"],
)
async def test_what_the_kit_says_of_its_restart_is_one_event(tmp_path: Path, lines: list[str]):
    async with (
        cloud_on(tmp_path) as cloud,
        kit_to_crash(tmp_path) as kit,
        agent_on(environment(tmp_path, cloud)) as agent,
    ):
        await agent.until("kit", "link", "well")
        for line in lines:
            kit.modem.kit.notify(line)
        kit.flush()
        await until_told(agent, modem_reset=1)
        (reset,) = await listed(cloud)
        assert lines[0] in reset["user_info"]["detail"]
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "kit", "link")["restarts"] == 1
        await agent.stop()


async def test_what_the_kit_printed_of_a_crash_goes_with_the_event_of_its_restart(tmp_path: Path):
    async with (
        cloud_on(tmp_path) as cloud,
        kit_to_crash(tmp_path) as kit,
        agent_on(environment(tmp_path, cloud)) as agent,
    ):
        await agent.until("kit", "link", "well")
        kit.have(lambda: kit.modem.kit.notify("***** MPU FAULT *****"))
        await agent.until_status(lambda status: concern_of(status, "kit", "console").get("faults"))
        kit.have(lambda: kit.modem.kit.notify("*** Booting nRF Connect SDK v3.1.1 ***"))
        await until_told(agent, modem_reset=1)
        (reset,) = await listed(cloud)
        assert ", after a fault: mpu fault (" in reset["user_info"]["detail"]
        await agent.stop()


async def test_a_restart_that_the_console_alone_tells_is_the_kits(tmp_path: Path):
    async with cloud_on(tmp_path) as cloud:
        await virtual_kit(tmp_path)
        with contextlib.closing(PtyServer(tmp_path / "console", lambda _data: None)) as console:
            keys = kit_keys(tmp_path) | {"console_port": console.port}
            async with agent_on(write_profile(tmp_path, cloud, {"kit": keys})) as agent:
                await agent.until("kit", "console", "well")
                await agent.until_status(
                    lambda status: concern_of(status, "kit", "link")["phase"] == "well"
                )
                console.send(b"*** Booting nRF Connect SDK v3.1.1 ***\r\n")
                await until_told(agent, modem_reset=1)
                status = json.loads((await agent.run("status", "--json")).out)
                assert concern_of(status, "kit", "link")["restarts"] == 1
                await agent.stop()


async def offered(standin: Any, folder: Path, version: str = "2.0.1") -> str:
    image = signed_image(folder, version, body=bytes(range(256)) * 40).read_bytes()
    return await offer_update(standin, image, f"v{version}")


@pytest.mark.contract("O3.4", "C6")
@pytest.mark.parametrize(
    ("fault", "rule", "happening", "reason", "state"),
    [
        ([], "", "fota succeeded", 3, "SUCCEEDED"),
        (["--fault", "flash-failed"], "", "fota failed", 0x8009, "FAILED"),
        ([], VERIFIED_ONLY, "fota rejected", 0x8009, "REJECTED"),
    ],
    ids=["done", "failed", "rejected"],
)
async def test_an_update_that_ended_is_one_event_also_across_kills_of_the_agent(
    standin: Any,
    tmp_path: Path,
    fault: list[str],
    rule: str,
    happening: str,
    reason: int,
    state: str,
):
    listing = with_token(standin)

    async def events() -> list[dict[str, Any]]:
        return own(await listing.data("~/events"))

    await onboard_device(standin)
    job_id = await offered(standin, tmp_path)
    kit = await virtual_kit(tmp_path, "kit", "--dialect", "serial-modem", *fault)
    # As a kill leaves it that comes after the journal and before the outbox.
    off = device_profile(tmp_path, standin, f"[profiles.bench.events]\nown = false\n{rule}")
    async with agent_on(off) as agent:
        status = await agent.until_status(lambda s: "last" in concern_of(s, "kit", "fota"))
        ended_at = datetime.fromisoformat(concern_of(status, "kit", "fota")["last"]["at"])
        assert await job_status(standin, job_id) == state
        await killed(agent)
    assert await events() == []
    where = device_profile(tmp_path, standin, rule)
    name = happening.replace(" ", "_")
    async with agent_on(where) as agent:
        await until_told(agent, **{name: 1})
        (event,) = await events()
        assert told([event]) == [happening]
        assert when(event) == ended_at, "it happened then, whenever it was told"
        assert event["event_info"]["reason"] == reason
        assert job_id in event["user_info"]["detail"]
        await killed(agent)
    async with agent_on(where) as agent:
        await agent.until("kit", "fota", "well")
        await kit.kill()
        await until_told(agent, link_lost=1)
        assert told(await events()) == [happening, "link lost"], "it is not told twice"
        await agent.stop()


async def test_an_update_and_the_restart_in_it_are_one_event(standin: Any, tmp_path: Path):
    await onboard_device(standin)
    await offered(standin, tmp_path)
    kit = await virtual_kit(tmp_path, "kit", "--dialect", "serial-modem")
    async with agent_on(device_profile(tmp_path, standin)) as agent:
        await until_told(agent, fota_succeeded=1)
        await kit.kill()
        await until_told(agent, link_lost=1)
        events = own(await with_token(standin).data("~/events"))
        assert told(events) == ["fota succeeded", "link lost"]
        await agent.stop()


async def test_a_disk_that_is_full_stops_neither_link_nor_update_and_loses_no_event(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    job_id = await offered(standin, tmp_path)
    await virtual_kit(tmp_path, "kit", "--dialect", "serial-modem")
    async with agent_on(device_profile(tmp_path, standin, NO_ROOM)) as agent:
        trouble = await agent.until("kit", "events", "trouble")
        assert "free on the disk" in trouble["trouble"]
        assert await job_status(standin, job_id) == "SUCCEEDED"
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "kit", "link")["phase"] == "well"
        device_profile(tmp_path, standin)
        assert (await agent.run("reload")).code == 0
        await until_told(agent, fota_succeeded=1)
        events = own(await with_token(standin).data("~/events"))
        assert told(events) == ["fota succeeded"]
        await agent.stop()
    said = [line for line in agent.log if '"events"' in line and "free on the disk" in line]
    assert len(said) == 1, agent.log


@pytest.mark.contract("O3.4")
async def test_what_happens_while_the_cloud_is_away_is_delivered_later_under_its_own_time(
    tmp_path: Path,
):
    kit = await virtual_kit(tmp_path)
    async with cloud_on(tmp_path) as cloud:
        where = environment(tmp_path, cloud)
    async with agent_on(where) as agent:
        await agent.until("kit", "link", "well")
        await kit.kill()
        await agent.until_status(
            lambda status: (
                concern_of(status, "kit", "events").get("link_lost_count") == 1
                and status["outbox"]["waiting"] == 1
            )
        )
        lost_by = datetime.now(UTC)
        await killed(agent)
    async with cloud_on(tmp_path) as cloud, agent_on(environment(tmp_path, cloud)) as agent:
        await agent.until_status(lambda status: not status["outbox"]["waiting"])
        (lost,) = await listed(cloud)
        assert when(lost) <= lost_by
        await agent.stop()


async def test_without_a_project_key_nothing_is_kept_and_it_is_said_once(tmp_path: Path):
    async with cloud_on(tmp_path) as cloud:
        kit = await virtual_kit(tmp_path)
        where = environment(tmp_path, cloud)
        del where["CELLAGENT_PROJECT_KEY"]
        async with agent_on(where) as agent:
            await agent.until("kit", "events", "off")
            for _ in range(2):
                await agent.until("kit", "link", "well")
                await kit.kill()
                await agent.until("kit", "link", "trouble")
                kit = await virtual_kit(tmp_path)
            await agent.until("kit", "link", "well")
            status = json.loads((await agent.run("status", "--json")).out)
            assert status["outbox"]["waiting"] == 0
            assert status["outbox"]["state"] == "well"
            await agent.stop()
    said = [line for line in agent.log if '"events"' in line]
    assert len(said) == 1, agent.log
    assert "no project key" in said[0]
