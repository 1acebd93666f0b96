"""The policy: the cheapest source that is good enough; what one source found is never lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.call import Host
from agent.config.project import ProjectSlugs
from agent.errors import ConfigError, CredentialMissing, Forbidden, NotFound
from agent.http import HttpClient, HttpTransport
from agent.location.access_points import MINIMUM, AccessPoint
from agent.location.calls import LocationCall
from agent.location.cell_scan import CellScan, ModemOff, NoCells
from agent.location.locator import LocationMethod, LocationOptions, Locator, NothingToSend
from agent.location.position import Position
from agent.location.wifi.scanner import WifiScan, WifiUnavailable
from at.protocol.errors import FirmwareRefused, LinkLost

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CELL = {"mcc": 1, "mnc": 1, "eci": 33703681, "tac": 2305}


class Service:
    """In the client's place: answers by the name of the call, and keeps what it was sent."""

    def __init__(self, **answers: Position | Exception | None) -> None:
        self.answers = answers
        self.sent: list[LocationCall] = []
        self.refusal: Exception | None = None

    async def kit_gate(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def require(self, call: Any) -> None:
        assert isinstance(call, LocationCall)

    async def send(self, call: Any) -> Any:
        self.sent.append(call)
        answer = self.answers[type(call).__name__]
        if isinstance(answer, Exception):
            raise answer
        return answer


def points(count: int) -> tuple[AccessPoint, ...]:
    return tuple(AccessPoint(f"40:01:7a:00:00:{n:02x}", -50 - n) for n in range(count))


def heard(scan: object) -> Callable[[], Awaitable[Any]]:
    async def listen() -> object:
        if isinstance(scan, Exception):
            raise scan
        return scan

    return listen


def locator(
    service: Service,
    wifi: object = None,
    cells: object = None,
    *,
    options: LocationOptions | None = None,
) -> Locator:
    return Locator(
        service,  # type: ignore[arg-type]
        ProjectSlugs("acme", "kits"),
        heard(wifi) if wifi is not None else None,
        heard(cells) if cells is not None else None,
        good_enough_m=100.0,
        options=options or LocationOptions(),
        device_id="kit-1",
        now=lambda: NOW,
    )


WIFI = WifiScan("networkmanager", points(3), ("this is its list of 40 s ago",))
CELLS = CellScan("%NCELLMEAS", "ltecatm", (CELL,))
SHARP, COARSE = Position(63.0, 10.0, 20.0, "WIFI"), Position(63.1, 10.1, 900.0, "WIFI")
MIDDLING = Position(63.2, 10.2, 300.0, "MCELL")


@pytest.mark.parametrize(
    ("hosts", "missing"),
    [({}, ConfigError), ({Host.DEVICE_CLOUD: "https://cloud.example.invalid"}, CredentialMissing)],
    ids=["no host", "no credential"],
)
@pytest.mark.parametrize("method", [None, *LocationMethod])
async def test_nothing_is_scanned_where_no_call_can_be_made(
    hosts: dict[Host, str], missing: type[Exception], method: LocationMethod | None
) -> None:
    never = AssertionError("scanned")
    async with HttpClient(HttpTransport(), hosts) as client:
        here = replace(locator(Service(), never, never), client=client, of_kit=False)
        with pytest.raises(missing):
            await here.locate(method)


async def test_wifi_that_is_good_enough_spares_the_modem() -> None:
    service = Service(LocateWifi=SHARP)
    fix = await locator(service, WIFI, AssertionError("not measured")).locate()
    assert (fix.at, fix.method, fix.position, fix.access_points) == (
        NOW,
        LocationMethod.WIFI,
        SHARP,
        3,
    )
    assert fix.to_json() == {
        "at": "2026-01-02T03:04:05+00:00", "with": "wifi", "lat": 63.0, "lon": 10.0,
        "uncertainty": 20.0, "fulfilled_with": "WIFI", "cells": 0, "access_points": 3,
        "sources": ["networkmanager"], "notes": ["this is its list of 40 s ago"],
    }  # fmt: skip


@pytest.mark.parametrize("answer", [None, Position(63.0, 10.0, 100.0, "WIFI")])
async def test_what_was_stored_and_what_is_just_good_enough_spares_the_modem(
    answer: Position | None,
) -> None:
    service = Service(LocateWifi=answer)
    fix = await locator(service, WIFI, AssertionError("not measured")).locate()
    assert (fix.method, fix.position) == (LocationMethod.WIFI, answer)


async def test_a_coarse_result_is_followed_by_cells_and_the_better_one_is_kept() -> None:
    fix = await locator(Service(LocateWifi=COARSE, LocateCell=MIDDLING), WIFI, CELLS).locate()
    assert (fix.method, fix.position, fix.sources) == (
        LocationMethod.CELL,
        MIDDLING,
        ("%NCELLMEAS",),
    )
    worse = Service(LocateWifi=MIDDLING, LocateCell=COARSE)
    assert (await locator(worse, WIFI, CELLS).locate()).position == MIDDLING


@pytest.mark.parametrize(
    "wifi", [None, WifiUnavailable("no radio"), WifiScan("iw", points(1)), WifiScan("iw", ())]
)
async def test_without_usable_wifi_the_cells_are_asked(wifi: object) -> None:
    service = Service(LocateCell=MIDDLING)
    fix = await locator(service, wifi, CELLS).locate()
    assert fix.method is LocationMethod.CELL
    assert [type(call).__name__ for call in service.sent] == ["LocateCell"]
    assert fix.notes


async def test_what_nobody_knows_of_one_source_may_be_known_of_the_other() -> None:
    service = Service(LocateWifi=NotFound("nothing found", status=404), LocateCell=MIDDLING)
    assert (await locator(service, WIFI, CELLS).locate()).position == MIDDLING


async def test_a_coarse_position_outlives_the_failure_of_the_next_source() -> None:
    service = Service(LocateWifi=COARSE, LocateCell=Forbidden("not enabled"))
    fix = await locator(service, WIFI, CELLS).locate()
    assert fix.position == COARSE
    assert "not enabled" in fix.notes[-1]


async def test_a_kit_that_goes_away_is_told_as_that_and_costs_no_coarse_position() -> None:
    away = LinkLost("it was unplugged")
    with pytest.raises(LinkLost):
        await locator(Service(), WifiUnavailable("no radio"), away).locate()
    fix = await locator(Service(LocateWifi=COARSE), WIFI, away).locate()
    assert fix.position == COARSE
    assert "unplugged" in fix.notes[-1]


async def test_a_refused_credential_is_not_tried_on_the_next_source() -> None:
    service = Service(LocateWifi=Forbidden("not enabled"))
    with pytest.raises(Forbidden):
        await locator(service, WIFI, CELLS).locate()
    assert len(service.sent) == 1


@pytest.mark.contract("D8.4")
async def test_no_position_anywhere_keeps_the_services_own_advice() -> None:
    gone = NotFound("404", hint="the legacy path is gone", status=404)
    with pytest.raises(NotFound) as told:
        await locator(Service(LocateWifi=gone, LocateCell=gone), WIFI, CELLS).locate()
    assert (told.value.hint, told.value.status) == ("the legacy path is gone", 404)
    with pytest.raises(NothingToSend, match=r"no radio.*no cell") as nothing:
        await locator(Service(), WifiUnavailable("no radio"), NoCells("no cell")).locate()
    assert "scan wifi" in nothing.value.hint


@pytest.mark.parametrize(
    ("method", "error"), [(None, NothingToSend), (LocationMethod.CELL, ModemOff)]
)
async def test_a_modem_that_is_off_is_to_be_turned_on(
    method: LocationMethod | None, error: type[Exception]
) -> None:
    off = ModemOff("it is off", hint="`cellagent modem on`")
    with pytest.raises(error, match="it is off") as told:
        await locator(Service(), WifiUnavailable("no radio"), off).locate(method)
    assert told.value.hint == "`cellagent modem on`"  # type: ignore[attr-defined]


@pytest.mark.contract("D8.1")
async def test_fewer_than_two_points_are_said_before_a_call_is_wasted() -> None:
    hidden = AccessPoint("02:00:00:00:00:01", -40)
    with pytest.raises(NothingToSend, match=r"1 usable Wi-Fi access point \(1 left out: locally"):
        await locator(Service(), WifiScan("iw", (*points(1), hidden))).locate(LocationMethod.WIFI)
    two = locator(Service(LocateWifi=SHARP), WifiScan("iw", points(2)))
    assert (await two.locate(LocationMethod.WIFI)).access_points == 2


async def test_ground_fix_sends_both_and_does_with_one() -> None:
    service = Service(GroundFix=SHARP)
    fix = await locator(service, WIFI, CELLS).locate(LocationMethod.GROUND_FIX)
    assert (fix.cells, fix.access_points) == (1, 3)
    assert fix.sources == ("%NCELLMEAS", "networkmanager")
    assert set(service.sent[0].body()) == {"ltecatm", "wifi"}
    only_cells = await locator(service, WifiScan("iw", points(1)), CELLS).locate(
        LocationMethod.GROUND_FIX
    )
    assert (only_cells.cells, only_cells.access_points) == (1, 0)
    only_wifi = await locator(
        service, WifiScan("iw", points(MINIMUM)), LinkLost("unplugged")
    ).locate(LocationMethod.GROUND_FIX)
    assert (only_wifi.cells, only_wifi.access_points) == (0, MINIMUM)
    with pytest.raises(NothingToSend):
        await locator(service, WifiScan("iw", points(1)), NoCells("none")).locate(
            LocationMethod.GROUND_FIX
        )


@pytest.mark.parametrize("method", [LocationMethod.WIFI, LocationMethod.GROUND_FIX])
async def test_the_names_of_networks_are_sent_only_where_that_is_asked_for(
    method: LocationMethod,
) -> None:
    service = Service(LocateWifi=SHARP, GroundFix=SHARP)
    scan = WifiScan("iw", tuple(replace(one, ssid=b"home") for one in points(MINIMUM)))
    for sends in (False, True):
        await locator(service, scan, options=LocationOptions(send_ssid=sends)).locate(method)
        assert ("home" in str(service.sent[-1].body())) is sends


async def test_the_options_and_the_device_go_with_the_call() -> None:
    service = Service(LocateCell=None)
    options = LocationOptions(do_reply=False, high_confidence=True, fallback=False)
    fix = await locator(service, WIFI, CELLS, options=options).locate(LocationMethod.CELL)
    assert fix.position is None
    assert fix.to_json()["lat"] is None
    request = service.sent[0].request()
    assert dict(request.query) == {"doReply": "false", "hiConf": "true", "fallback": "false"}
    assert request.headers == {"x-custom-device-id": "kit-1"}
    assert service.sent[0].in_kit_name
    service = Service(LocateWifi=SHARP)
    await replace(locator(service, WIFI), of_kit=False, device_id="").locate()
    assert not service.sent[0].in_kit_name, "this host's own radio heard it, for no device"


@pytest.mark.contract("D2.2")
async def test_a_device_that_no_header_can_name_is_located_with_a_note() -> None:
    here = locator(Service(LocateCell=MIDDLING), WIFI, CELLS)
    here.device_id = "drivhus nørd"
    fix = await here.locate(LocationMethod.CELL)
    assert fix.position is not None
    assert "not told that this is drivhus nørd" in fix.notes[-1]


@pytest.mark.contract("D1.3")
async def test_a_refused_firmware_ends_it_before_anything_is_heard_or_sent() -> None:
    service = Service()
    asked = locator(service, AssertionError("not scanned"), AssertionError("not scanned"))
    service.refusal = FirmwareRefused("too old")
    for method in (None, *LocationMethod):
        with pytest.raises(FirmwareRefused):
            await asked.locate(method)
    assert service.sent == []
