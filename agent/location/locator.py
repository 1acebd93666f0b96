"""Locates a kit by the cells and Wi-Fi that it and this host hear, and tells whether it moved."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from agent.config.profile import KitSettings, Profile
from agent.config.project import ProjectSlugs
from agent.errors import AgentError, NotFound, UsageError
from agent.http import HttpClient
from agent.location import calls, module, serial_modem
from agent.location.access_points import (
    MINIMUM,
    AccessPoint,
    Selection,
    access_points_to_json,
    select_usable,
)
from agent.location.cell_scan import CellScan, ModemOff, scan_cells
from agent.location.module import is_module
from agent.location.position import Position, position_to_json
from agent.location.wifi.choice import WIFI_DEADLINE_S, wifi_source
from agent.location.wifi.scanner import WifiScan
from at.driver.modem import Modem
from at.protocol.counts import counted
from at.protocol.dialect import Dialect
from at.protocol.errors import AtError, LinkLost

S = TypeVar("S")


class LocationMethod(Enum):
    """The methods of a location request; the values are those of `--with`."""

    WIFI = "wifi"
    CELL = "cell"
    GROUND_FIX = "ground-fix"


_BY_OWN_CLIENT = {
    LocationMethod.WIFI: module.BY_WIFI,
    LocationMethod.CELL: module.BY_CELL,
    LocationMethod.GROUND_FIX: module.BY_ALL,
}


_ANOTHER_WAY = {
    LocationMethod.WIFI: "locate with cells: `--with cell`",
    LocationMethod.CELL: "locate with Wi-Fi: `--with wifi`",
    LocationMethod.GROUND_FIX: "check antenna, SIM and Wi-Fi of this host",
}


class NothingToSend(AgentError):
    """Too few cells or access points were heard for a location call."""

    kind = "nothing-heard"


@dataclass(frozen=True, slots=True)
class LocationOptions:
    """Options of a location call: see LocationCall; `send_ssid` sends the networks' names."""

    do_reply: bool | None = None
    high_confidence: bool | None = None
    fallback: bool | None = None
    send_ssid: bool = False


@dataclass(frozen=True, slots=True)
class Fix:
    """A position with its time and its sources; `position` None when none was asked for.

    `cells` and `access_points` are how many were sent. `notes` are for a person: sources that
    failed, coarse results that were used. `sources` are where the scans came from: %NCELLMEAS or
    %XMONITOR for cells, else the name of a source of Wi-Fi scans.
    """

    at: datetime
    method: LocationMethod
    position: Position | None
    cells: int
    access_points: int
    notes: tuple[str, ...]
    sources: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the object of `locate --json`."""
        return {
            "at": self.at.isoformat(),
            "with": self.method.value,
            **position_to_json(self.position),
            "cells": self.cells,
            "access_points": self.access_points,
            "sources": list(self.sources),
            "notes": list(self.notes),
        }


MOVED_M = 100.0
"""In metres: two positions nearer than this are one place, however certain both are."""


def moved(reported: Mapping[str, object] | None, fix: Fix) -> bool:
    """Return whether the kit has moved since the position that was reported last.

    `reported` is what `Fix.to_json` gave for that, None where nothing was reported yet: then any
    position counts. A kit has moved when the two are further apart than their uncertainties
    explain. A fix without a position (none was asked for) never counts.
    """
    if fix.position is None:
        return False
    try:
        before = msgspec.convert(reported or {}, Position)
    except msgspec.ValidationError:
        return True  # nothing was reported that can be compared with
    apart = fix.position.distance_m(before.lat, before.lon)
    return apart > max(MOVED_M, (before.uncertainty_m or 0.0) + (fix.position.uncertainty_m or 0.0))


def position_message(fix: Fix) -> dict[str, object]:
    """Return the device message that reports a fix, for `agent.cloud.messages.SendMessage`.

    GROUND_FIX with the fields of a ground-fix answer: GNSS would claim that satellites were heard.
    """
    assert fix.position is not None
    return {
        "appId": "GROUND_FIX",
        "messageType": "DATA",
        "data": fix.position.answer(),
        "ts": round(fix.at.timestamp() * 1000),
    }


class OwnClient(NamedTuple):
    """A kit's own client of the service; `source` is its command.

    `locate` gets the bits of `agent.location.module`.
    """

    locate: Callable[[int], Awaitable[Position]]
    source: str


@dataclass(slots=True)
class Locator:
    """Locates a kit. The scans are callables, so that any source fits; None is no source.

    A position is good enough within `good_enough_m` metres of uncertainty. `of_kit` is False where
    this host is located with no kit: then nothing may be heard by a kit, and no device is named.
    """

    client: HttpClient
    project: ProjectSlugs | None
    scan_wifi: Callable[[], Awaitable[WifiScan]] | None
    scan_cells: Callable[[], Awaitable[CellScan]] | None
    good_enough_m: float
    options: LocationOptions = field(default_factory=LocationOptions)
    device_id: str = ""
    of_kit: bool = True
    own_client: OwnClient | None = None
    """Locates in place of this host, which then sends nothing."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def locate(self, method: LocationMethod | None = None) -> Fix:
        """Return the position by one method, or by the cheapest that is good enough.

        Raises NothingToSend where too little is heard, NotFound where the service knows no position
        for what was heard, LinkLost where the kit goes away and nothing else locates it, and what
        the client's gate and a call raise: before a scan, where the configuration allows no call.
        """
        if self.of_kit:
            await self.client.kit_gate()  # before the kit is made to scan
        if self.own_client is not None:
            wanted = method or LocationMethod.GROUND_FIX
            position = await self.own_client.locate(_BY_OWN_CLIENT[wanted])
            return Fix(self.now(), wanted, position, 0, 0, (), (self.own_client.source,))
        # What is not configured is told before a scan, which takes seconds.
        self.client.require(calls.GroundFix(self.project))
        return await (self._by(method) if method else self._cheapest())

    async def _cheapest(self) -> Fix:
        """Ask by Wi-Fi, which costs the kit nothing; by its cells if that is not good enough."""
        notes: list[str] = []
        failures: list[AgentError | LinkLost] = []
        best: Fix | None = None
        for method in (LocationMethod.WIFI, LocationMethod.CELL):
            try:
                fix = await self._by(method)
            except (AgentError, LinkLost) as error:
                # A coarse position is kept; without one only another source may help.
                if best is None and not isinstance(error, NothingToSend | NotFound | ModemOff):
                    raise
                notes.append(str(error))
                failures.append(error)
                continue
            notes += fix.notes
            best = fix if best is None else min(best, fix, key=_uncertainty)
            if fix.position is None or _uncertainty(fix) <= self.good_enough_m:
                break
        if best is None:
            raise _nothing(failures)
        return replace(best, notes=tuple(notes))

    async def _by(self, method: LocationMethod) -> Fix:
        """Scan what the method takes, and ask by that."""
        notes: list[str] = []
        wifi, cells = WifiScan("", ()), CellScan("", "lte", ())
        points: tuple[AccessPoint, ...] = ()
        if method is not LocationMethod.CELL:
            wifi = await _attempt(self.scan_wifi, "Wi-Fi", notes) or wifi
            notes += wifi.notes
            selection = select_usable(wifi.points)
            if len(selection.usable) < MINIMUM:
                notes.append(_too_few(selection))
            else:
                points = selection.usable
        if method is not LocationMethod.WIFI:
            passes = (ModemOff, LinkLost) if method is LocationMethod.CELL else ()
            cells = await _attempt(self.scan_cells, "cells", notes, passes=passes) or cells
            notes += cells.notes
        if not points and not cells.cells:
            raise NothingToSend("; ".join(notes), hint=_ANOTHER_WAY[method])
        position = await self.client.send(self._call(method, cells, points))
        if self.device_id and not calls.can_be_header(self.device_id):
            notes.append(
                f"the service is not told that this is {self.device_id}: no header holds it"
            )
        sources = tuple(filter(None, (cells.source, wifi.source if points else "")))
        return Fix(
            self.now(), method, position, len(cells.cells), len(points), tuple(notes), sources
        )

    def _call(
        self, method: LocationMethod, cells: CellScan, points: Sequence[AccessPoint]
    ) -> calls.LocationCall:
        heard = access_points_to_json(points, send_ssid=self.options.send_ssid)
        call: calls.LocationCall
        if method is LocationMethod.WIFI:
            call = calls.LocateWifi(self.project, access_points=heard)
        elif method is LocationMethod.CELL:
            call = calls.LocateCell(self.project, cells=cells.cells, radio=cells.radio)
        else:
            call = calls.GroundFix(
                self.project, cells=cells.cells, access_points=heard, radio=cells.radio
            )
        return replace(
            call,
            do_reply=self.options.do_reply,
            high_confidence=self.options.high_confidence,
            fallback=self.options.fallback,
            device_id=self.device_id,
            heard_by_kit=self.of_kit,
        )


async def _attempt(
    scan: Callable[[], Awaitable[S]] | None,
    what: str,
    notes: list[str],
    *,
    passes: tuple[type[AgentError | LinkLost], ...] = (),
) -> S | None:
    """Scan. The failure of a source becomes a note, as the other may be enough; `passes` raise."""
    if scan is None:
        notes.append(f"{what}: no source is configured")
        return None
    try:
        return await scan()
    except passes:
        raise
    except (AgentError, AtError) as error:
        notes.append(f"{what}: {error}")
        return None


def _nothing(failures: Sequence[AgentError | LinkLost]) -> AgentError:
    """Return the error to raise without a position; the service's own NotFound takes precedence."""
    text = "no position: " + "; ".join(str(error) for error in failures)
    for error in failures:
        if isinstance(error, NotFound):
            return NotFound(text, hint=error.hint, status=error.status, code=error.code)
    for error in failures:
        if isinstance(error, ModemOff):
            return NothingToSend(text, hint=error.hint)
    return NothingToSend(
        text, hint="`cellagent scan cells` and `cellagent scan wifi` show what can be heard"
    )


def _too_few(selection: Selection) -> str:
    usable, left_out = len(selection.usable), len(selection.left_out)
    reasons = ", ".join(sorted({reason.value for _, reason in selection.left_out}))
    why = f" ({left_out} left out: {reasons})" if reasons else ""
    heard = counted(usable, "usable Wi-Fi access points")
    return f"{heard}{why}, and the service needs {MINIMUM}"


def _uncertainty(fix: Fix) -> float:
    if fix.position is None or fix.position.uncertainty_m is None:
        return float("inf")
    return fix.position.uncertainty_m


def locator_for(
    profile: Profile,
    kit: KitSettings | None,
    client: HttpClient,
    modem: Modem | None,
    options: LocationOptions | None = None,
) -> Locator:
    """Return the locator of a kit by its profile; without a modem it hears Wi-Fi alone.

    Without a kit it locates this host: by its own Wi-Fi, and for no device. Raises UsageError,
    NothingToSend.
    """
    if kit is None and profile.location.wifi == "companion":
        raise NothingToSend(
            "Wi-Fi is to come from a kit's companion, and no kit is there to ask for its firmware",
            hint="`--port PORT` names the kit; `cellagent config set location.wifi auto` takes "
            "this host's own Wi-Fi",
        )
    wifi = wifi_source(profile.location.wifi, kit, modem)
    scan_wifi = partial(wifi.scan, WIFI_DEADLINE_S) if wifi is not None else None
    return Locator(
        client,
        calls.project_of(profile),
        scan_wifi,
        partial(scan_cells, modem) if modem is not None else None,
        profile.location.good_enough_m,
        options or LocationOptions(send_ssid=profile.location.send_ssid),
        kit.device_id if kit else "",
        kit is not None,
        own_client=_own_client(modem, scan_wifi) if profile.location.by == "module" else None,
    )


def _own_client(
    modem: Modem | None, scan_wifi: Callable[[], Awaitable[WifiScan]] | None
) -> OwnClient:
    """Return the client by which a kit locates itself. Raises UsageError where it has none."""
    if modem is not None and is_module(modem):
        return OwnClient(partial(module.locate, modem), module.SOURCE)
    if modem is not None and modem.dialect is Dialect.SERIAL_MODEM:
        return OwnClient(partial(serial_modem.locate, modem, scan_wifi), serial_modem.SOURCE)
    raise UsageError(
        "the kit is to locate itself (location.by), and is neither an nRF93M1 nor runs "
        "Serial Modem",
        hint="`cellagent config set location.by host`",
    )
