"""Have the modem measure the cells around it: within a deadline, and cancelled when we are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import AgentError
from agent.location.cells import RADIOS, monitored_to_json, to_json
from at.commands.cells import (
    Cell,
    CellMeasurement,
    CellMeasurementNotice,
    MeasureCells,
    StopMeasuringCells,
)
from at.commands.identity import ReadRevision
from at.commands.signal import Monitor, ReadMonitor
from at.errors import AtError, CommandRejected, ParseError
from at.firmware import read_firmware

if TYPE_CHECKING:
    from at.modem import Modem

_GCI_SINCE = (1, 3, 4)
_STOP_S = 5.0
"""Time in which a measurement that was stopped must tell what it has."""


class NoCells(AgentError):
    """The modem hears no cell, or may not measure."""

    kind = "no-cells"


@dataclass(frozen=True, slots=True)
class SearchType:
    """A search type of %NCELLMEAS: its number, and whether it lists cells by global id."""

    number: int
    counts_cells: bool


SEARCHES = {
    "default": SearchType(0, counts_cells=False),
    "extended-light": SearchType(1, counts_cells=False),
    "extended-complete": SearchType(2, counts_cells=False),
    "gci-default": SearchType(3, counts_cells=True),
    "gci-extended-light": SearchType(4, counts_cells=True),
    "gci-extended-complete": SearchType(5, counts_cells=True),
}


@dataclass(frozen=True, slots=True)
class CellScan:
    """What was heard: cells as the service takes them, and what a person should know of them."""

    source: str
    radio: str
    cells: tuple[dict[str, object], ...]
    measured: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()


async def scan_cells(
    modem: Modem, search: str = "default", *, count: int | None = None, deadline_s: float = 60.0
) -> CellScan:
    """Measure cells. Raises NoCells, AtError.

    `search` is a key of SEARCHES; `count`, 2-15, is for those that list global ids. Where the
    modem refuses to measure, what it monitors is taken instead.
    """
    wanted = SEARCHES[search]
    notes: list[str] = []
    if wanted.counts_cells and not await _lists_global_ids(modem):
        notes.append("this firmware lists no global cell ids (1.3.4 does): a plain search instead")
        wanted = SEARCHES["extended-complete"]
    monitor = await _monitor(modem)
    radio = RADIOS.get(monitor.act or 0, "lte") if monitor is not None else "lte"
    try:
        measurement = await _measure(modem, wanted, count, deadline_s)
    except CommandRejected as refusal:
        notes.append(f"the modem refused to measure ({refusal}): its serving cell instead")
        cells = tuple(monitored_to_json(monitor)) if monitor is not None else ()
        if not cells:
            raise NoCells(
                "the modem refuses to measure cells and is on none",
                hint="let it register: cellagent modem at AT+CFUN=1, then wait for +CEREG: 1 or 5",
            ) from refusal
        return CellScan("%XMONITOR", radio, cells, notes=tuple(notes))
    if measurement.status == 2:
        notes.append("the measurement was interrupted: there may be more cells than these")
    cells = tuple(to_json(measurement))
    if measurement.status == 1 or not cells:
        raise NoCells(
            "the modem measured and heard no cell",
            hint="check the antenna and AT+CFUN? (1 is on), or search longer: "
            "--search extended-complete",
        )
    return CellScan("%NCELLMEAS", radio, cells, measurement.cells, tuple(notes))


async def _measure(
    modem: Modem, wanted: SearchType, count: int | None, deadline_s: float
) -> CellMeasurement:
    command = MeasureCells(wanted.number, (count or 5) if wanted.counts_cells else None)
    with modem.notices(CellMeasurementNotice) as notices:
        await modem.send(command)
        try:
            async with asyncio.timeout(deadline_s):
                return (await anext(notices)).value
        except TimeoutError:
            # The measurement goes on in the modem; told to stop, it says what it has.
            await modem.send(StopMeasuringCells())
            try:
                async with asyncio.timeout(_STOP_S):
                    return (await anext(notices)).value
            except TimeoutError as error:
                raise NoCells(
                    f"the modem told no result within {deadline_s:g} s, nor when stopped",
                    hint="try again, or --search default",
                ) from error
        except asyncio.CancelledError:
            await asyncio.shield(_stop(modem))
            raise


async def _stop(modem: Modem) -> None:
    """Leave no measurement running behind us; a modem that is gone measures nothing."""
    try:
        async with asyncio.timeout(_STOP_S):
            await modem.send(StopMeasuringCells())
    except (AtError, TimeoutError):
        return


async def _monitor(modem: Modem) -> Monitor | None:
    try:
        return await modem.send(ReadMonitor())
    except (CommandRejected, ParseError):
        return None


async def _lists_global_ids(modem: Modem) -> bool:
    firmware = read_firmware((await modem.send(ReadRevision())).revision)
    # The later chips began with firmware that does.
    return firmware.chip != "nrf9160" or firmware.at_least(_GCI_SINCE)
