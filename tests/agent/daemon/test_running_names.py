"""Under which names the running agent reports a crash: the virtual kit's own, once it told them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from observability import with_token
from running_agent import RunningAgent, agent_on, concern_of, kit_keys, kit_to_crash, write_profile

from at.virtual.server.runner import ModemRunner

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


def written(folder: Path, standin: Any, **keys: str) -> dict[str, str]:
    ready = {
        "urls": standin.urls,
        "organization": standin.organization,
        "project": standin.project,
        "credentials": standin.credentials,
    }
    return write_profile(folder, ready, {"kit": {**kit_keys(folder), **keys}})


async def crash(kit: ModemRunner, agent: RunningAgent) -> None:
    """Crash the kit; wait for its dump, and for the events that it tells once it is up again."""

    def seen(status: dict[str, Any]) -> bool:
        console = concern_of(status, "kit", "console")
        heard = console.get("dumps") == 1 and console.get("chunks", 0) >= 2
        return heard and not status["outbox"]["waiting"]

    await agent.until("kit", "link", "well")
    kit.crash()
    await agent.until_status(seen)


async def crashes(standin: Any) -> list[tuple[str, str, str, str]]:
    """Return who crashed: of each trace of a dump the four names, the oldest first."""
    events = await with_token(standin).data("~/events")
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
    assert after == (saved.imei, "nrf9161dk", "virtual-app", saved.app_version)


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
    assert await crashes(standin) == [("bench-kit-1", *names.values())] * 2
