"""From what is heard to where the kit is: the cheapest source that is good enough comes first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from agent.errors import AgentError, NotFound
from agent.location.access_points import MINIMUM, Selection, select, to_json
from agent.location.calls import GroundFix, LocateCell, LocateWifi, LocationCall, ProjectSlugs
from agent.location.position import Position
from at.protocol.errors import AtError

if TYPE_CHECKING:
    from agent.http import HttpClient
    from agent.location.cell_scan import CellScan
    from agent.location.wifi.scanner import WifiScan

S = TypeVar("S")


class LocationMethod(Enum):
    """How a position is asked for; the values are the words of `--with`."""

    WIFI = "wifi"
    CELL = "cell"
    GROUND_FIX = "ground-fix"


class NothingToSend(AgentError):
    """Nothing was heard that a location call could be made with."""

    kind = "nothing-heard"


@dataclass(frozen=True, slots=True)
class LocationOptions:
    """What a call is told about its answer: see LocationCall."""

    do_reply: bool | None = None
    high_confidence: bool | None = None
    fallback: bool | None = None
    wifi_as_array: bool = False
    send_ssid: bool = False


@dataclass(frozen=True, slots=True)
class Fix:
    """A position with its time and its sources; `position` None when none was asked for.

    `notes` are what a person should know: sources that failed, coarse results that were kept.
    `sources` are what heard: %NCELLMEAS or %XMONITOR for cells, else a source of Wi-Fi scans.
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
        place = self.position
        return {
            "at": self.at.isoformat(),
            "with": self.method.value,
            "lat": place.lat if place is not None else None,
            "lon": place.lon if place is not None else None,
            "uncertainty": place.uncertainty_m if place is not None else None,
            "fulfilled_with": place.fulfilled_with if place is not None else None,
            "cells": self.cells,
            "access_points": self.access_points,
            "sources": list(self.sources),
            "notes": list(self.notes),
        }


@dataclass(slots=True)
class Locator:
    """Finds where a kit is. The scans are callables, so that any source fits; None has none.

    `gate` refuses a kit in whose name nothing may be sent (clause D1.3); None where there is none.
    """

    client: HttpClient
    project: ProjectSlugs | None
    scan_wifi: Callable[[], Awaitable[WifiScan]] | None
    scan_cells: Callable[[], Awaitable[CellScan]] | None
    good_enough_m: float
    switches: LocationOptions = field(default_factory=LocationOptions)
    device_id: str = ""
    gate: Callable[[], Awaitable[None]] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def locate(self, method: LocationMethod | None = None) -> Fix:
        """Return the position by one method, or by the cheapest that is good enough.

        Raises NothingToSend when nothing can be heard, NotFound when nobody knows what was heard,
        and what the gate and a call raise.
        """
        if self.gate is not None:
            await self.gate()
        if method is LocationMethod.GROUND_FIX:
            return await self._ground_fix()
        if method is LocationMethod.WIFI:
            return await self._wifi()
        if method is LocationMethod.CELL:
            return await self._cell()
        return await self._cheapest()

    async def _cheapest(self) -> Fix:
        """Ask by Wi-Fi, which costs the kit nothing; by its cells if that is not good enough."""
        notes: list[str] = []
        failures: list[AgentError] = []
        best: Fix | None = None
        for attempt in (self._wifi, self._cell):
            try:
                fix = await attempt()
            except AgentError as error:
                # What there is is kept; with nothing in hand only another source may help.
                if best is None and not isinstance(error, NothingToSend | NotFound):
                    raise
                notes.append(str(error))
                failures.append(error)
                continue
            notes += fix.notes
            best = fix if best is None else min(best, fix, key=_uncertainty)
            if self._good_enough(fix):
                break
        if best is None:
            raise _nothing(failures)
        return replace(best, notes=tuple(notes))

    def _good_enough(self, fix: Fix) -> bool:
        return fix.position is None or _uncertainty(fix) <= self.good_enough_m

    async def _wifi(self) -> Fix:
        notes: list[str] = []
        heard, source = await self._heard_wifi(notes)
        if len(heard.usable) < MINIMUM:
            raise NothingToSend(
                "; ".join([*notes, _too_few(heard)]),
                hint="locate with cells: --with cell",
            )
        call = LocateWifi(
            self.project, access_points=to_json(heard.usable, send_ssid=self.switches.send_ssid)
        )
        return await self._ask(call, LocationMethod.WIFI, 0, len(heard.usable), (source,), notes)

    async def _cell(self) -> Fix:
        notes: list[str] = []
        scan = await _attempt(self.scan_cells, "cells", notes)
        if scan is None:
            raise NothingToSend("; ".join(notes), hint="locate with Wi-Fi: --with wifi")
        call = LocateCell(self.project, cells=scan.cells, radio=scan.radio)
        notes += scan.notes
        return await self._ask(call, LocationMethod.CELL, len(scan.cells), 0, (scan.source,), notes)

    async def _ground_fix(self) -> Fix:
        notes: list[str] = []
        heard, source = await self._heard_wifi(notes)
        if len(heard.usable) < MINIMUM:
            notes.append(_too_few(heard))
        points = heard.usable if len(heard.usable) >= MINIMUM else ()
        scan = await _attempt(self.scan_cells, "cells", notes)
        if scan is not None:
            notes += scan.notes
        if scan is None and not points:
            raise NothingToSend("; ".join(notes), hint="check antenna, SIM and Wi-Fi of this host")
        call = GroundFix(
            self.project,
            cells=scan.cells if scan is not None else (),
            access_points=to_json(points, send_ssid=self.switches.send_ssid),
            radio=scan.radio if scan is not None else "lte",
            wifi_as_array=self.switches.wifi_as_array,
        )
        cells = len(scan.cells) if scan is not None else 0
        sources = [scan.source] if scan is not None else []
        sources += [source] if points else []
        return await self._ask(call, LocationMethod.GROUND_FIX, cells, len(points), sources, notes)

    async def _heard_wifi(self, notes: list[str]) -> tuple[Selection, str]:
        scan = await _attempt(self.scan_wifi, "Wi-Fi", notes)
        if scan is None:
            return Selection((), ()), ""
        notes += scan.notes
        return select(scan.points), scan.source

    async def _ask(
        self,
        call: LocationCall,
        method: LocationMethod,
        cells: int,
        points: int,
        sources: Iterable[str],
        notes: list[str],
    ) -> Fix:
        told = replace(
            call,
            do_reply=self.switches.do_reply,
            high_confidence=self.switches.high_confidence,
            fallback=self.switches.fallback,
            device_id=self.device_id,
        )
        position = await self.client.send(told)
        return Fix(self.now(), method, position, cells, points, tuple(notes), tuple(sources))


async def _attempt(
    scan: Callable[[], Awaitable[S]] | None, what: str, notes: list[str]
) -> S | None:
    """Scan; a source that fails becomes a note, for the other one may do."""
    if scan is None:
        notes.append(f"{what}: no source is configured")
        return None
    try:
        return await scan()
    except (AgentError, AtError) as error:
        notes.append(f"{what}: {error}")
        return None


def _nothing(failures: list[AgentError]) -> AgentError:
    """Return what to raise when no source led to a position: the service's own no goes first."""
    text = "no position: " + "; ".join(str(error) for error in failures)
    for error in failures:
        if isinstance(error, NotFound):
            return NotFound(text, hint=error.hint, status=error.status, code=error.code)
    return NothingToSend(
        text, hint="`cellagent scan cells` and `cellagent scan wifi` show what can be heard"
    )


def _too_few(heard: Selection) -> str:
    reasons = {reason.value for _, reason in heard.left_out}
    left_out = f" ({len(heard.left_out)} left out: {', '.join(sorted(reasons))})" if reasons else ""
    return (
        f"{len(heard.usable)} usable Wi-Fi access points{left_out}, and the service needs {MINIMUM}"
    )


def _uncertainty(fix: Fix) -> float:
    if fix.position is None or fix.position.uncertainty_m is None:
        return float("inf")
    return fix.position.uncertainty_m
