"""Under which names the running agent reports a crash: the virtual kit's own, once it told them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbor2
import pytest

from at.virtual.console import export_lines
from at.virtual.server.runner import ModemRunner
from tests.support.cloud.observability import with_token
from tests.support.commands.running_agent import (
    RunningAgent,
    agent_on,
    concern_of,
    kit_keys,
    kit_to_crash,
    write_profile,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


NAMED_EVENT = b"\x02" + cbor2.dumps({2: 1, 3: 1, 7: "its-own-name", 10: "main", 9: "1.0.0", 4: {}})


def written(
    folder: Path, standin: Any, *names: str, extra: str = "", **keys: str
) -> dict[str, str]:
    kits = {name: {**kit_keys(folder, name), **keys} for name in names or ("kit",)}
    return write_profile(folder, standin.ready, kits, extra)


async def crash(kit: ModemRunner, agent: RunningAgent) -> None:
    """Crash the kit; wait for its dump, and for the events that it tells once it is up again."""

    await agent.until("kit", "link", "well")
    kit.crash()
    await agent.until_status(crashed_and_delivered)


def crashed_and_delivered(status: dict[str, Any], dumps: int = 1) -> bool:
    """Return whether so many dumps, and the events that follow a crash, were delivered."""
    console = concern_of(status, "kit", "console")
    heard = console.get("dumps") == dumps and console.get("chunks", 0) >= 2 * dumps
    return heard and not status["outbox"]["waiting"]


async def crashes(standin: Any) -> list[tuple[str, str, str, str]]:
    """Return who crashed: of each trace of a dump the four names, the oldest first."""
    call = with_token(standin)
    events = list[Any]()
    while page := await call.data("~/events", per_page=100, page=len(events) // 100 + 1):
        events += page
        if len(page) < 100:
            break
    return [
        (
            event["device"]["device_serial"],
            event["device"]["hardware_version"],
            event["software_type"],
            event["software_version"],
        )
        for event in sorted(events, key=lambda event: event["captured_date"])
        if "zephyr_reason" in (event["user_info"] or {})
    ]


async def devices(standin: Any) -> list[str]:
    """Return the serials of the devices that the service lists."""
    return [device["device_serial"] for device in await with_token(standin).data("~/devices")]


@pytest.mark.contract("O5.2", "C7")
async def test_a_crash_is_reported_under_the_names_that_the_kit_itself_uses(
    standin: Any, tmp_path: Path
):
    async with kit_to_crash(tmp_path) as kit:
        saved = kit.modem.kit.saved
        for _ in range(2):
            async with agent_on(written(tmp_path, standin)) as agent:
                await crash(kit, agent)
                await agent.stop()
    before, after = await crashes(standin)
    assert before[2:] == ("unknown", "unknown"), "nothing had told it yet"
    assert after == (saved.uuid, "nrf9161dk", "virtual-app", saved.app_version)


def crashes_when_first_spoken_to(kit: ModemRunner) -> Callable[[bytes], None]:
    """Return the kit's `receive`, which crashes it before its modem has ever answered."""
    receive, spoken_to = kit.receive, False

    def received(data: bytes) -> None:
        nonlocal spoken_to
        if not spoken_to:
            spoken_to = True
            kit.crash()
        receive(data)

    return received


@pytest.mark.contract("O5.2", "C7")
async def test_a_kit_that_crashes_before_its_modem_answered_is_one_device(
    standin: Any, tmp_path: Path
):
    async with kit_to_crash(tmp_path, receives=crashes_when_first_spoken_to) as kit:
        async with agent_on(written(tmp_path, standin)) as agent:
            status = await agent.until_status(crashed_and_delivered)
            kit.crash()
            await agent.until_status(lambda now: crashed_and_delivered(now, dumps=2))
        assert await devices(standin) == [kit.modem.kit.saved.uuid]
        assert [serial for serial, *_ in await crashes(standin)] == [kit.modem.kit.saved.uuid] * 2
        link = concern_of(status, "kit", "link")
        assert (link["device_id"], link["device_id_from"]) == (kit.modem.kit.saved.uuid, "uuid")


async def test_what_the_profile_says_of_a_kit_goes_before_what_it_says_itself(
    standin: Any, tmp_path: Path
):
    names = {"hardware_version": "board-7", "software_type": "main", "software_version": "4.5.6"}
    where = written(tmp_path, standin, device_id="bench-kit-1", **names)
    async with kit_to_crash(tmp_path) as kit:
        for _ in range(2):  # two crashes, though their dumps are equal: its fault was heard
            async with agent_on(where) as agent:
                await crash(kit, agent)
                await agent.stop()
    told = [(serial, *software) for serial, _, *software in await crashes(standin)]
    assert told == [("bench-kit-1", "main", "4.5.6")] * 2
    assert await devices(standin) == ["bench-kit-1"], "what it says itself has no serial"


@pytest.mark.contract("O5.1", "O5.2")
async def test_what_was_taken_before_a_kit_is_known_outlives_a_kill_and_goes_under_its_id(
    standin: Any, tmp_path: Path
):
    tells = False

    def reticent(kit: ModemRunner) -> Callable[[bytes], None]:
        def receive(data: bytes) -> None:
            hides = not tells and any(word in data for word in (b"CGSN", b"UUID", b"%JWT"))
            kit.receive(b"AT+NONE\r" if hides else data)

        return receive

    where = written(tmp_path, standin)
    async with kit_to_crash(tmp_path, receives=reticent) as kit:
        async with agent_on(where) as agent:
            await agent.until_status(
                lambda now: "kit.device_id" in json.dumps(concern_of(now, "kit", "link"))
            )
            kit.crash()
            status = await agent.until_status(
                lambda now: (
                    concern_of(now, "kit", "console").get("dumps") == 1
                    and now["outbox"]["waiting"] >= 2
                )
            )
            assert "device_id" not in concern_of(status, "kit", "link")
            assert "id not known yet" in (await agent.run("status")).out
            listed = (await agent.run("outbox", "list", "--json")).out.splitlines()[:-1]
            assert {json.loads(line)["device"] for line in listed} == {"kit:kit"}
            assert await devices(standin) == []
            agent.process.kill()
            await agent.process.wait()
        tells = True
        async with agent_on(where) as agent:
            await agent.until_status(lambda now: not now["outbox"]["waiting"])
            await agent.stop()
        assert await devices(standin) == [kit.modem.kit.saved.uuid]
        assert [serial for serial, *_ in await crashes(standin)] == [kit.modem.kit.saved.uuid]


async def test_a_kit_that_is_named_otherwise_by_its_own_events_is_told(
    standin: Any, tmp_path: Path
):
    async with kit_to_crash(tmp_path) as kit, agent_on(written(tmp_path, standin)) as agent:
        await agent.until("kit", "link", "well")
        kit.modem.kit.print(export_lines(NAMED_EVENT))
        async with asyncio.timeout(30):  # the link is looked at after 60 s where nothing happens
            status = await agent.until_status(
                lambda now: "two devices" in json.dumps(concern_of(now, "kit", "link"))
            )
        await agent.stop()
    (finding,) = [
        each
        for each in concern_of(status, "kit", "link")["findings"]
        if "two devices" in each["what"]
    ]
    assert "name it its-own-name" in finding["what"]
    assert "kit.device_id" in finding["try"]


@pytest.mark.contract("O5.2", "C7")
async def test_kits_that_are_swapped_at_a_port_and_two_of_one_agent_are_one_device_each(
    standin: Any, tmp_path: Path
):
    heartbeats = "[profiles.bench.events]\nheartbeat_s = 1"
    where = written(tmp_path, standin, "kit", "beside", extra=heartbeats)
    ids: list[str] = []

    async def told(agent: RunningAgent, kits: dict[str, ModemRunner]) -> None:
        await agent.until_status(
            lambda now: all(concern_of(now, name, "link").get("firmware") for name in kits)
        )
        for kit in kits.values():
            kit.crash()
        status = await agent.until_status(
            lambda now: all(concern_of(now, name, "console").get("dumps") for name in kits)
        )
        named = [concern_of(status, name, "link")["device_id"] for name in kits]
        # A dump that is counted may be on its way to the outbox still.
        while not set(named) <= {serial for serial, *_ in await crashes(standin)}:
            await agent.until_status(lambda now: not now["outbox"]["waiting"])
        ids.extend(named)

    async with kit_to_crash(tmp_path, name="beside", imei="352656100441784") as beside:
        async with kit_to_crash(tmp_path) as first, agent_on(where) as agent:
            await told(agent, {"kit": first, "beside": beside})
            first_id = first.modem.kit.saved.uuid
        swapped_in = kit_to_crash(tmp_path, imei="352656100441776")
        async with swapped_in as second, agent_on(where) as agent:
            await told(agent, {"kit": second, "beside": beside})
        expected = [first_id, second.modem.kit.saved.uuid, beside.modem.kit.saved.uuid]
    assert ids == [expected[0], expected[2], expected[1], expected[2]]
    assert sorted(await devices(standin)) == sorted(expected)
    assert {serial for serial, *_ in await crashes(standin)} == set(expected)


@pytest.mark.contract("O5.2", "C7")
async def test_a_kit_that_is_swapped_in_and_crashes_before_its_modem_answers_is_itself(
    standin: Any, tmp_path: Path
):
    where = written(tmp_path, standin)
    other = "352656100441776"

    def is_off(status: dict[str, Any]) -> bool:
        found = concern_of(status, "kit", "link").get("findings") or []
        return any("is off (functional mode 0): it hears" in each["what"] for each in found)

    async with agent_on(where) as agent:
        async with kit_to_crash(tmp_path) as first:
            await agent.until("kit", "link", "well")
            assert (await agent.run("modem", "at", "AT+CFUN=1")).code == 0
            await agent.until_status(lambda now: "cell" in concern_of(now, "kit", "link"))
            await agent.until_status(lambda now: "position" in concern_of(now, "kit", "location"))
            first_id = first.modem.kit.saved.uuid
        gone = await agent.until_status(lambda now: not concern_of(now, "kit", "link").get("cell"))
        assert concern_of(gone, "kit", "link")["device_id"] == first_id, (
            "it is the one that is away"
        )
        swapped_in = kit_to_crash(tmp_path, imei=other, receives=crashes_when_first_spoken_to)
        async with swapped_in as second:
            status = await agent.until_status(
                lambda now: crashed_and_delivered(now) and is_off(now)
            )
            assert concern_of(status, "kit", "link")["device_id"] == second.modem.kit.saved.uuid
            await agent.until_status(
                lambda now: (
                    concern_of(now, "kit", "location").get("position", {}).get("at", "")
                    > concern_of(gone, "kit", "location")["position"]["at"]
                )
            )
        await agent.stop()
    assert [serial for serial, *_ in await crashes(standin)] == [second.modem.kit.saved.uuid]
    assert any(
        f"another kit than before is here: {second.modem.kit.saved.uuid}" in line
        for line in agent.log
    )
