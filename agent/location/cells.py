"""Cells as the location service takes them: from a measurement, or from what the modem monitors."""

from __future__ import annotations

from collections.abc import Sequence

from agent.location.agnss import ServingCell
from at.commands.cells import Cell, CellMeasurement, Neighbor
from at.commands.signal import Monitor

_RSRP_DBM = range(-157, -43)
_RSRQ_DB = (-34.5, 3.5)
_NO_CELL = 0x0FFFFFFF
_TIMING_ADVANCE = range(20513)
_EARFCN = range(262144)
RADIOS = {7: "ltecatm", 9: "nbiot"}
"""AcT of the serving cell -> the service's name for its kind; others count as "lte"."""


def to_json(measurement: CellMeasurement) -> list[dict[str, object]]:
    """Return the cells of a measurement, the serving one first; what is unknown is left out.

    Neighbours that have no global id go with the serving cell, or with the first one.
    """
    known = sorted(
        (cell for cell in measurement.cells if cell.identified), key=lambda cell: not cell.serving
    )
    entries = [_cell(cell) for cell in known]
    if entries and measurement.neighbors:
        entries[0]["nmr"] = [
            _neighbor(neighbor) for neighbor in measurement.neighbors if neighbor.earfcn in _EARFCN
        ]
    return entries


def monitored_to_json(monitor: Monitor) -> list[dict[str, object]]:
    """Return the serving cell that %XMONITOR names; empty while not registered."""
    if not monitor.plmn or not monitor.cell_id or not monitor.tac:
        return []
    if int(monitor.cell_id, 16) > _NO_CELL:
        return []
    entry = _identity(monitor.plmn, monitor.cell_id, monitor.tac)
    _add_level(entry, monitor.rsrp_dbm, None)
    if monitor.earfcn is not None and monitor.earfcn in _EARFCN:
        entry["earfcn"] = monitor.earfcn
    if monitor.phys_cell_id is not None:
        entry["pci"] = monitor.phys_cell_id
    return [entry]


def serving_cell(cells: Sequence[dict[str, object]]) -> ServingCell | None:
    """Return the first of the cells of a request as assistance data is asked for."""
    if not cells:
        return None
    first = cells[0]
    numbers = [first[name] for name in ("mcc", "mnc", "tac", "eci")]
    mcc, mnc, tac, eci = (int(str(number)) for number in numbers)
    level = first.get("rsrp")
    return ServingCell(mcc, mnc, tac, eci, level if isinstance(level, int) else None)


def _cell(cell: Cell) -> dict[str, object]:
    entry = _identity(cell.plmn, cell.cell_id, cell.tac)
    if cell.earfcn in _EARFCN:
        entry["earfcn"] = cell.earfcn
    entry["pci"] = cell.phys_cell_id
    _add_level(entry, cell.rsrp_dbm, cell.rsrq_db)
    if cell.timing_advance in _TIMING_ADVANCE:
        entry["adv"] = cell.timing_advance
    return entry


def _neighbor(neighbor: Neighbor) -> dict[str, object]:
    entry: dict[str, object] = {"earfcn": neighbor.earfcn, "pci": neighbor.phys_cell_id}
    _add_level(entry, neighbor.rsrp_dbm, neighbor.rsrq_db)
    entry["timeDiff"] = neighbor.time_diff
    return entry


def _identity(plmn: str, cell_id: str, tac: str) -> dict[str, object]:
    # MCC and MNC go out as numbers: "01" and "001" are told apart by nobody on the other side.
    return {
        "mcc": int(plmn[:3]),
        "mnc": int(plmn[3:]),
        "eci": int(cell_id, 16),
        "tac": int(tac, 16),
    }


def _add_level(entry: dict[str, object], rsrp_dbm: int | None, rsrq_db: float | None) -> None:
    if rsrp_dbm is not None and rsrp_dbm in _RSRP_DBM:
        entry["rsrp"] = rsrp_dbm
    if rsrq_db is not None and _RSRQ_DB[0] <= rsrq_db <= _RSRQ_DB[1]:
        entry["rsrq"] = rsrq_db
