"""The position of a kit as the device cloud hears of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.daemon.kit import positions
from agent.daemon.kit.positions import KitPositions, pause_s
from agent.daemon.snapshot import HISTORY, HeardCell, LocationStatus, Phase
from agent.daemon.status import StatusRegistry
from agent.errors import RateLimited, Unreachable
from agent.location.locator import Fix, LocationMethod
from agent.location.position import Position
from agent.tasks import cancel_and_wait
from tests.support.commands.running_agent import agent_on, concern_of, virtual_kit
from tests.support.fota.update_offers import DEVICE, device_profile, onboard_device
from tests.support.harness import virtual_time
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


def located_kit(
    monkeypatch: pytest.MonkeyPatch, record: Any = None, failures: Sequence[Exception] = ()
) -> KitPositions:
    """Return the positions of a kit that is found at once, if nothing fails."""

    async def locate() -> Fix:
        for failure in failures:
            raise failure
        return Fix(NOW, LocationMethod.CELL, Position(63.4, 10.4, 500.0), 1, 0, ())

    async def modem(_waiting: object) -> None:
        return None

    def ignore(*_: object, **__: object) -> None:
        return None

    found: Any = SimpleNamespace(scan_cells=None, locate=locate)
    monkeypatch.setattr(positions, "locator_for", lambda *_: found)
    record = record or SimpleNamespace(position=None, reported=None)
    store: Any = SimpleNamespace(record=record, append_position=ignore, update=ignore)
    link: Any = SimpleNamespace(wait_up=modem, while_same_kit=lambda work: work)
    return KitPositions(StatusRegistry().add_concern(LocationStatus, "kit"), link, store)


def failing(error: Exception) -> Any:
    """Return a client whose every call fails."""

    async def send(*_: object, **__: object) -> None:
        raise error

    return SimpleNamespace(send=send)


PROFILE: Any = SimpleNamespace(
    kit=SimpleNamespace(device_id="nrf-1"), location=SimpleNamespace(interval_s=3600.0)
)


async def test_places_are_kept_up_to_a_bound_and_gone_with_the_kit(monkeypatch: pytest.MonkeyPatch):
    kit = located_kit(monkeypatch)
    concern, client = kit.concern, failing(Unreachable("no answer"))
    for _ in range(HISTORY + 5):
        await kit.find(PROFILE, client)
    assert len(concern.status.track) == HISTORY
    assert concern.status.unreported == "no answer"
    concern.status.neighbors = [HeardCell(6300, 17)]
    kit.forget()
    status = concern.status
    assert (status.position, status.unreported) == (None, None)
    assert (status.track, status.neighbors) == ([], [])


def test_a_report_that_the_service_put_off_is_tried_again_when_it_asked_for_that(
    monkeypatch: pytest.MonkeyPatch,
):
    kit = located_kit(monkeypatch)
    busy = failing(RateLimited("too many", status=429, retry_after_s=600.0))
    began = datetime.now(UTC)
    with suppress(TimeoutError):
        virtual_time.run(asyncio.wait_for(kit.run(lambda: PROFILE, busy, lambda: None), 1.0))
    assert kit.concern.status.next_try is not None
    assert 600.0 <= (kit.concern.status.next_try - began).total_seconds() < 700.0
    kit.service_is_back()
    assert not kit.concern.wake.is_set()


ON_NETWORK: Any = SimpleNamespace(refusal="", may_be_registered=True)


def test_a_report_for_which_no_service_was_there_is_tried_again_when_one_is_back(
    monkeypatch: pytest.MonkeyPatch,
):
    kit = located_kit(monkeypatch)
    away = failing(Unreachable("no answer"))
    with suppress(TimeoutError):
        virtual_time.run(asyncio.wait_for(kit.run(lambda: PROFILE, away, lambda: ON_NETWORK), 1.0))
    assert kit.concern.phase is Phase.WELL
    assert kit.concern.awaits_service, "else the agent does not look whether it is back"


def test_a_kit_whose_network_comes_while_it_is_being_found_is_found_once(
    monkeypatch: pytest.MonkeyPatch,
):
    """As one that is turned on by hand: the end of the lease wakes it, and then the network."""
    kit = located_kit(monkeypatch)
    begun: list[float] = []

    async def find(*_: object) -> None:
        begun.append(asyncio.get_running_loop().time())
        await asyncio.sleep(5.0)

    async def turned_on() -> None:
        nobody: Any = None
        running = asyncio.ensure_future(kit.run(lambda: PROFILE, nobody, lambda: ON_NETWORK))
        await asyncio.sleep(1.0)
        kit.try_again()
        await asyncio.sleep(100.0)
        await cancel_and_wait(running)

    monkeypatch.setattr(kit, "find", find)
    virtual_time.run(turned_on())
    assert len(begun) == 1


def test_a_kit_that_is_being_found_again_is_not_said_to_be_found_later(
    monkeypatch: pytest.MonkeyPatch,
):
    kit = located_kit(monkeypatch)
    told: list[datetime | None] = []

    async def find(*_: object) -> None:
        told.append(kit.concern.status.next_try)

    async def woken() -> None:
        nobody: Any = None
        running = asyncio.ensure_future(kit.run(lambda: PROFILE, nobody, lambda: ON_NETWORK))
        await asyncio.sleep(1.0)
        assert kit.concern.status.next_try is not None
        kit.concern.wake.set()
        await asyncio.sleep(1.0)
        await cancel_and_wait(running)

    monkeypatch.setattr(kit, "find", find)
    virtual_time.run(woken())
    assert told == [None, None]


BUSY = failing(RateLimited("too many", status=429, retry_after_s=5.0))


async def run_once(kit: KitPositions, *, registered: bool = True) -> None:
    contact: Any = SimpleNamespace(refusal="", may_be_registered=registered)
    with suppress(TimeoutError):
        await asyncio.wait_for(kit.run(lambda: PROFILE, BUSY, lambda: contact), 1.0)


def test_a_kit_whose_firmware_is_refused_is_not_located(monkeypatch: pytest.MonkeyPatch):
    kit = located_kit(monkeypatch)
    contact: Any = SimpleNamespace(refusal="it is too old")
    with suppress(TimeoutError):
        virtual_time.run(asyncio.wait_for(kit.run(lambda: PROFILE, BUSY, lambda: contact), 1.0))
    status = kit.concern.status
    assert (status.phase, status.track) == (Phase.OFF, [])
    assert status.trouble == "the modem's firmware is refused"


def seconds_to_next_try(kit: KitPositions) -> float:
    assert kit.concern.status.next_try is not None
    return (kit.concern.status.next_try - datetime.now(UTC)).total_seconds()


def test_a_kit_that_is_back_where_it_was_reported_is_found_at_the_interval_again(
    monkeypatch: pytest.MonkeyPatch,
):
    record = SimpleNamespace(position=None, reported=None)
    kit = located_kit(monkeypatch, record)

    async def away_and_back() -> None:
        await run_once(kit)
        assert kit.concern.status.unreported == "too many"
        record.reported = {"lat": 63.4, "lon": 10.4, "uncertainty": 500.0}
        await run_once(kit)

    virtual_time.run(away_and_back())
    assert kit.concern.status.unreported is None
    assert seconds_to_next_try(kit) > 3500.0


def test_a_kit_off_the_network_is_found_at_the_interval_though_a_report_was_put_off(
    monkeypatch: pytest.MonkeyPatch,
):
    failures: list[Exception] = []
    kit = located_kit(monkeypatch, failures=failures)

    async def on_and_off() -> None:
        await run_once(kit)
        failures.append(Unreachable("no answer"))
        await run_once(kit, registered=False)

    virtual_time.run(on_and_off())
    assert seconds_to_next_try(kit) > 3500.0


@pytest.mark.parametrize(
    ("interval_s", "asked_s", "pause"),
    [(3600, 0, 3600), (3600, 600, 600), (3600, 1, 60), (30, 1, 30), (30, 600, 600)],
)
def test_the_next_position_is_found_when_a_report_may_be_sent_and_not_every_second(
    interval_s: float, asked_s: float, pause: float
):
    assert pause_s(interval_s, asked_s) == pause


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
