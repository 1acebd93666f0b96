"""The position of a kit as the device cloud hears of it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.daemon.kit import positions
from agent.daemon.kit.positions import KitPositions
from agent.daemon.snapshot import HISTORY, HeardCell, LocationStatus
from agent.daemon.status import StatusRegistry
from agent.errors import RateLimited, Unreachable
from agent.location.locator import Fix, LocationMethod
from agent.location.position import Position
from tests.support.commands.running_agent import agent_on, concern_of, virtual_kit
from tests.support.fota.update_offers import DEVICE, device_profile, onboard_device
from tests.support.page.statuses import NOW

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

NETWORK = "the kit to be on the network"


async def test_a_place_is_reported_as_a_device_message_and_once(standin: Any, tmp_path: Path):
    await onboard_device(standin)
    await virtual_kit(tmp_path)
    where = device_profile(tmp_path, standin)
    query = {"deviceId": DEVICE, "appId": "GROUND_FIX"}
    headers = standin.bearer("api_key")

    async def messages() -> list[dict[str, Any]]:
        found = await standin.client.get("/v1/messages", params=query, headers=headers)
        return [item["message"] for item in found.json()["items"]]

    async with agent_on(where) as agent:
        await agent.until("kit", "location", "well")
        (told,) = await messages()
        assert await agent.stop() == 0
    async with agent_on(where) as agent:
        await agent.until("kit", "location", "well")
        assert await messages() == [told], "the kit is where it was"
    assert {"lat", "lon", "uncertainty"} <= set(told["data"])


async def test_a_kit_that_is_off_is_told_as_off_and_found_once_it_is_on(
    standin: Any, tmp_path: Path
):
    await onboard_device(standin)
    await virtual_kit(tmp_path)
    where = device_profile(tmp_path, standin, '[profiles.bench.location]\nwifi = "none"\n')

    def waits(status: dict[str, Any]) -> bool:
        return bool(concern_of(status, "kit", "location")["trouble"] == NETWORK)

    async with agent_on(where) as agent:
        status = await agent.until_status(waits)
        assert status["headline"]["state"] == "attention"
        assert "the modem is off" in status["headline"]["says"]
        shown = await agent.run("status")
        assert shown.code == 0
        assert f"location     waiting for {NETWORK}" in shown.out
        assert (await agent.run("modem", "at", "AT+CFUN=1")).code == 0
        await agent.until("kit", "location", "well")  # an hour before its turn


@pytest.mark.parametrize("words", [("modem", "at", "AT"), ("hold", "kit", "--", "true")])
async def test_a_place_that_could_not_be_reported_is_once_a_person_has_mended_it(
    standin: Any, tmp_path: Path, words: tuple[str, ...]
):
    await virtual_kit(tmp_path)

    def unreported(status: dict[str, Any]) -> str:
        return str(concern_of(status, "kit", "location").get("unreported") or "")

    async with agent_on(device_profile(tmp_path, standin)) as agent:
        status = await agent.until_status(lambda status: "404" in unreported(status))
        way_out = concern_of(status, "kit", "location")["unreported_try"]
        assert "cellagent provision run --registration onboard" in way_out
        await onboard_device(standin)
        assert (await agent.run(*words)).code == 0
        await agent.until_status(lambda status: not unreported(status))
        assert await agent.stop() == 0


async def test_places_are_kept_up_to_a_bound_told_when_the_service_is_back_and_gone_with_the_kit(
    monkeypatch: pytest.MonkeyPatch,
):
    async def locate() -> Fix:
        return Fix(NOW, LocationMethod.CELL, Position(63.4, 10.4, 500.0), 1, 0, ())

    async def away(*_: object, **__: object) -> None:
        raise Unreachable("no answer")

    async def modem(_waiting: object) -> None:
        return None

    def ignore(*_: object, **__: object) -> None:
        return None

    found: Any = SimpleNamespace(scan_cells=None, locate=locate)
    monkeypatch.setattr(positions, "locator_for", lambda *_: found)
    record = SimpleNamespace(position=None, reported=None)
    store: Any = SimpleNamespace(record=record, append_position=ignore, update=ignore)
    link: Any = SimpleNamespace(wait_up=modem)
    client: Any = SimpleNamespace(send=away)
    profile: Any = SimpleNamespace(kit=SimpleNamespace(device_id="nrf-1"))
    concern = StatusRegistry().add_concern(LocationStatus, "kit")
    kit = KitPositions(concern, link, store)
    for _ in range(HISTORY + 5):
        await kit.find(profile, client)
    assert len(concern.status.track) == HISTORY
    assert (concern.status.unreported, concern.awaits_service) == ("no answer", True)
    concern.status.neighbors = [HeardCell(6300, 17)]
    kit.forget()
    status = concern.status
    assert (status.position, status.unreported) == (None, None)
    assert (status.track, status.neighbors) == ([], [])


def test_a_service_that_asked_for_a_wait_is_not_asked_as_soon_as_another_is_back():
    store: Any = SimpleNamespace(record=SimpleNamespace(position=None))
    link: Any = None
    concern = StatusRegistry().add_concern(LocationStatus, "kit")
    kit = KitPositions(concern, link, store)
    concern.record_failure(RateLimited("429", status=429, retry_after_s=600.0))
    kit.service_is_back()
    assert not concern.wake.is_set()
    concern.set_well()
    concern.status.unreported = "no answer"
    kit.service_is_back()
    assert concern.wake.is_set()
