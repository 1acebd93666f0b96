"""Scans of cells: measured by the modem within a deadline, as the location service takes them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agent.errors import AgentError, UsageError
from agent.location.agnss import ServingCell
from agent.location.cell_values import identity, is_network, level
from agent.location.module import cells_to_json, is_module
from at.commands.cells import (
    Cell,
    CellMeasurement,
    CellMeasurementNotice,
    MeasureCells,
    StopMeasuringCells,
)
from at.commands.functional_mode import OFF_MODES, ReadFunctionalMode
from at.commands.identity import ReadRevision
from at.commands.nrf93m1.radio import ReadCells
from at.commands.signal import Monitor, ReadMonitor
from at.driver.modem import Modem
from at.driver.stream import Stream
from at.protocol.errors import AtError, CommandRejected, CommandTimeout, ParseError
from at.protocol.firmware_version import read_firmware
from at.protocol.notices import Malformed, Notice

_TYPES_SINCE = (1, 3, 4)
_INTERRUPTED = 2
_NOTHING = {
    0: "the modem measured and heard no cell with an id",
    1: "the measurement failed: the modem heard no cell",
    _INTERRUPTED: "the measurement was interrupted before a cell was heard",
}
_STOP_S = 5.0
"""Time in which a measurement that was stopped must give what it has."""
_NO_CELL = 0x0FFFFFFF
_TIMING_ADVANCE = range(20513)
_EARFCN = range(262144)
RADIOS = {7: "ltecatm", 9: "nbiot"}
"""AcT of the serving cell -> the service's name for its kind; others count as "lte"."""


class NoCells(AgentError):
    """The modem hears no cell, or may not measure."""

    kind = "no-cells"


class ModemOff(NoCells):
    """The modem is in a functional mode in which it hears nothing."""

    kind = "modem-off"


SEARCHES = {
    "default": 0,
    "extended-light": 1,
    "extended-complete": 2,
    "gci-default": 3,
    "gci-extended-light": 4,
    "gci-extended-complete": 5,
}
"""The search types of %NCELLMEAS. From `_FIRST_BY_ID` on they list cells by global id."""
_FIRST_BY_ID = SEARCHES["gci-default"]


@dataclass(frozen=True, slots=True)
class CellScan:
    """The result of a scan: `cells` as the service takes them, their `radio` and `source`.

    `on_cell`: the first of them is the serving cell. `notes` are for a person.
    """

    source: str
    radio: str
    cells: tuple[dict[str, object], ...]
    on_cell: bool = True
    notes: tuple[str, ...] = ()

    @property
    def neighbors(self) -> list[dict[str, object]]:
        """What is heard besides the serving cell, as the service takes it."""
        found = self.cells[0].get("nmr", []) if self.cells else []
        return [dict(entry) for entry in found] if isinstance(found, list) else []


async def scan_cells(
    modem: Modem, search: str = "default", *, count: int | None = None, deadline_s: float = 60.0
) -> CellScan:
    """Measure cells. Raises ModemOff before anything is measured; NoCells, UsageError, AtError.

    `search` is a key of SEARCHES; `count`, 2-15, is for those that list global ids. Where the
    modem refuses to measure, or hears nothing, the cell that it monitors is returned instead.
    """
    search_type = SEARCHES[search]
    if count is not None and search_type < _FIRST_BY_ID:
        raise UsageError(
            f"the search {search} takes no count of cells", hint="`--search gci-default` takes one"
        )
    mode = (await modem.send(ReadFunctionalMode())).fun
    if mode in OFF_MODES:
        raise ModemOff(
            f"the modem is off (functional mode {mode}): it hears no cell",
            hint="`cellagent modem on`",
        )
    if is_module(modem):
        return _of_module(cells_to_json(await modem.send(ReadCells())))
    notes: list[str] = []
    if search_type and not await _knows_search_types(modem):
        notes.append(f"this firmware knows no search types (1.3.4 does): default, not {search}")
        search_type = SEARCHES["default"]
    monitor = await modem.try_send(ReadMonitor())
    radio = RADIOS.get(monitor.act or 0, "lte") if monitor is not None else "lte"
    try:
        measurement = await _measure(modem, search_type, count, deadline_s)
    except CommandRejected as refusal:
        why = f"the modem refused to measure ({refusal})"
        return _monitored(monitor, radio, [*notes, why], refusal)
    cells = tuple(measurement_to_json(measurement))
    if not cells:
        return _monitored(monitor, radio, [*notes, _NOTHING[measurement.status]], None)
    if measurement.status == _INTERRUPTED:
        notes.append("the measurement was interrupted: there may be more cells than these")
    return CellScan("%NCELLMEAS", radio, cells, measurement.serving_cell is not None, tuple(notes))


def _of_module(cells: list[dict[str, object]]) -> CellScan:
    """Return the cells of an nRF93M1, which has one search. Raises NoCells without any."""
    if not cells:
        raise NoCells(
            "the module is on no cell",
            hint="check the antenna, then `cellagent modem on` waits for the network",
        )
    return CellScan("%BCINFO", "lte", tuple(cells))


def _monitored(
    monitor: Monitor | None, radio: str, notes: list[str], refusal: CommandRejected | None
) -> CellScan:
    """Return the serving cell alone. Raises NoCells without one."""
    cells = tuple(monitor_to_json(monitor)) if monitor is not None else ()
    if not cells:
        raise NoCells(
            "; ".join([*notes, "and it is on no cell"]),
            hint="check the antenna, then `cellagent modem on` waits for the network and says why "
            "there is none; `--search extended-complete` searches longest",
        ) from refusal
    return CellScan("%XMONITOR", radio, cells, notes=(*notes, "only the cell it is on is known"))


async def _measure(
    modem: Modem, search_type: int, count: int | None, deadline_s: float
) -> CellMeasurement:
    command = MeasureCells(search_type, (count or 5) if search_type >= _FIRST_BY_ID else None)
    await modem.own_position.wait()
    with modem.notices("%NCELLMEAS") as notices:
        try:
            await modem.send(command)
            return await _result(notices, deadline_s)
        except TimeoutError:
            # The measurement goes on in the modem; when stopped, it gives what it has.
            await modem.send(StopMeasuringCells())
        except (asyncio.CancelledError, CommandTimeout):
            await asyncio.shield(_stop(modem))
            raise
        try:
            return await _result(notices, _STOP_S)
        except TimeoutError as error:
            raise NoCells(
                f"the modem told no result within {deadline_s:g} s, nor when stopped",
                hint="try again, or `--search default`",
            ) from error


async def _result(notices: Stream[Notice], deadline_s: float) -> CellMeasurement:
    """Return the next result. Raises TimeoutError, and ParseError for one that is malformed."""
    async with asyncio.timeout(deadline_s):
        notice = await anext(notices)
    if isinstance(notice, CellMeasurementNotice):
        return notice.value
    raise ParseError(notice.error if isinstance(notice, Malformed) else notice.line)


async def _stop(modem: Modem) -> None:
    """Stop the measurement; a modem that is gone measures nothing."""
    try:
        async with asyncio.timeout(_STOP_S):
            # A link that is not in step gives up at half of a command's time: so at all of ours.
            await modem.send(StopMeasuringCells(), timeout_s=2 * _STOP_S)
    except (AtError, TimeoutError):
        return


async def _knows_search_types(modem: Modem) -> bool:
    firmware = read_firmware((await modem.send(ReadRevision())).revision)
    # The later chips began with firmware that does.
    return firmware.chip != "nrf9160" or firmware.at_least(_TYPES_SINCE)


def measurement_to_json(measurement: CellMeasurement) -> list[dict[str, object]]:
    """Return the cells of a measurement, the serving one first, without unknown values.

    Neighbours that have no global id go with the serving cell, or with the first one.
    """
    known = sorted(
        (cell for cell in measurement.cells if cell.identified and is_network(cell.plmn)),
        key=lambda cell: not cell.serving,
    )
    entries = [_cell(cell) for cell in known]
    if entries and measurement.neighbors:
        entries[0]["nmr"] = [
            level(one.earfcn, one.phys_cell_id, one.rsrp_dbm, one.rsrq_db, timeDiff=one.time_diff)
            for one in measurement.neighbors
            if one.earfcn in _EARFCN
        ]
    return entries


def monitor_to_json(monitor: Monitor) -> list[dict[str, object]]:
    """Return the serving cell that %XMONITOR names; empty while not registered."""
    if not monitor.plmn or not monitor.cell_id or not monitor.tac:
        return []
    if int(monitor.cell_id, 16) > _NO_CELL or not is_network(monitor.plmn):
        return []
    heard = level(monitor.earfcn, monitor.phys_cell_id, monitor.rsrp_dbm, None)
    return [{**identity(monitor.plmn, monitor.cell_id, monitor.tac), **heard}]


def serving_cell(cells: Sequence[dict[str, object]]) -> ServingCell | None:
    """Return the first cell of a request as a request for assistance data names it."""
    return msgspec.convert(cells[0], ServingCell) if cells else None


def _cell(cell: Cell) -> dict[str, object]:
    earfcn = cell.earfcn if cell.earfcn in _EARFCN else None
    advance = cell.timing_advance if cell.timing_advance in _TIMING_ADVANCE else None
    heard = level(earfcn, cell.phys_cell_id, cell.rsrp_dbm, cell.rsrq_db, adv=advance)
    return {**identity(cell.plmn, cell.cell_id, cell.tac), **heard}
