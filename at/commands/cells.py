"""Neighbour cell measurement: %NCELLMEAS, all search types, %NCELLMEASSTOP (Nordic's reference).

The command answers OK at once; the result is a notice. Search types 0-2 and 3-5 have results of one
name and two shapes: the search type of the running measurement tells them apart, or, if it is
unknown, the number of fields and the position of the next cell.
"""

from typing import ClassVar

from at.commands.registration import HIGHEST_CELL_ID
from at.commands.signal import plmn_code
from at.protocol.command import Command, Form, OkCommand, at_command, read_command
from at.protocol.errors import UnsafeArgument
from at.protocol.levels import HasRsrp, HasRsrq
from at.protocol.notices import Notice, register
from at.protocol.values import Fields, Record

_TIME_HIGH = 2**64 - 2
_INDEX = 2**15  # an index outside the tables has no dBm; the cell is still of use
_GCI_TYPES = range(3, 6)


class CellLevel(HasRsrp, HasRsrq, Record, frozen=True):
    """The fields that a serving and a neighbouring cell have in common."""

    earfcn: int
    phys_cell_id: int
    rsrp: int
    rsrq: int

    derived: ClassVar[tuple[str, ...]] = ("rsrp_dbm", "rsrq_db")


class Neighbor(CellLevel, frozen=True):
    """A cell known by its frequency and physical id; `time_diff` in ms to the serving cell's."""

    time_diff: int


class Cell(CellLevel, frozen=True):
    """A cell known by its global id; times in ms since the modem's start, the advance in Ts."""

    cell_id: str
    plmn: str
    tac: str
    timing_advance: int
    meas_time: int
    ta_meas_time: int | None = None
    serving: int = 1
    neighbors: tuple[Neighbor, ...] = ()

    derived: ClassVar[tuple[str, ...]] = (*CellLevel.derived, "neighbor_count")

    @property
    def neighbor_count(self) -> int:
        """The number of its neighbours, which a line of types 3-5 states."""
        return len(self.neighbors)

    @property
    def identified(self) -> bool:
        """Whether the cell id is valid: above 0FFFFFFF there is no cell."""
        return int(self.cell_id, 16) <= HIGHEST_CELL_ID


class CellMeasurement(Record, frozen=True):
    """A result of either shape. Status 0 ok, 1 failed, 2 incomplete but valid as far as it goes."""

    status: int
    cells: tuple[Cell, ...] = ()

    @property
    def serving_cell(self) -> Cell | None:
        """The cell that the modem camps on, None if the result names none."""
        return next((cell for cell in self.cells if cell.serving and cell.identified), None)

    @property
    def neighbors(self) -> tuple[Neighbor, ...]:
        """The neighbours of all cells."""
        return tuple(neighbor for cell in self.cells for neighbor in cell.neighbors)


class ServingMeasurement(CellMeasurement, frozen=True):
    """A result of types 0-2: one cell, whose fields JSON also shows at the top."""

    def extra_json(self) -> dict[str, object]:
        """Return the fields of the serving cell."""
        return self.cells[0].to_json() if self.cells else {}


class CellMeasurementNotice(Notice, frozen=True):
    """%NCELLMEAS, the result of a measurement."""

    value: CellMeasurement


@at_command("AT%NCELLMEAS=")
class MeasureCells(OkCommand, frozen=True):
    """AT%NCELLMEAS[=<search_type>[,<gci_count>]]; wait for CellMeasurementNotice.

    One at a time. Types 3-5 accept `gci_count` 2-15 and need firmware 1.3.4. A result may take
    minutes: set a limit, then send StopMeasuringCells.
    """

    search_type: int = 0
    gci_count: int | None = None

    def encode(self) -> str:
        """Return the command; type 0 goes out plain, as the SDK sends it."""
        if self.search_type not in range(6):
            raise UnsafeArgument(f"search type {self.search_type} is not in 0..5")
        if self.search_type not in _GCI_TYPES and self.gci_count is not None:
            raise UnsafeArgument("only the search types 3, 4 and 5 take a count of cells")
        if self.gci_count is not None and not 2 <= self.gci_count <= 15:
            raise UnsafeArgument(f"a count of {self.gci_count} cells is not in 2..15")
        return "AT%NCELLMEAS" if self.search_type == 0 else Command.encode(self)


@at_command("AT%NCELLMEASSTOP")
class StopMeasuringCells(OkCommand, frozen=True):
    """AT%NCELLMEASSTOP: the notice then comes with what was measured so far (status 2)."""


def read_measurement(line: str, search_type: int | None = None) -> CellMeasurement:
    """Return the measurement of a result line; `search_type` None: unknown. Raises ParseError."""
    fields = Fields.of(line, "%NCELLMEAS")
    status = fields.integer("status", 0, 2)
    gci = search_type in _GCI_TYPES if search_type is not None else _looks_gci(fields)
    if status == 1:  # failed: what may follow says nothing
        return CellMeasurement(1) if gci else ServingMeasurement(1)
    if fields.left == 0 or (fields.left == 1 and fields.peek().absent):
        if status == 0 and not gci:
            raise fields.fail("cell_id", "is missing")
        return CellMeasurement(status) if gci else ServingMeasurement(status)
    return _global(fields, status) if gci else _serving(fields, status)


def _looks_gci(fields: Fields) -> bool:
    """Return whether a line is of types 3-5; `fields` is behind the status.

    Neighbours have 5 fields. Without them types 0-2 leave 9 or 10 fields and types 3-5 leave 12
    for the first cell, and only the latter have the quotes of a second cell.
    """
    left = fields.left
    if left and fields.peek(left - 1).absent:
        left -= 1  # a trailing comma
    if any(fields.peek(index).quoted for index in range(3, left)):
        return True
    return left >= 12 and (left - 12) % 5 == 0


def _serving(fields: Fields, status: int) -> ServingMeasurement:
    cell_id, network, tac = _identity(fields)
    advance = _timing_advance(fields)
    earfcn, phys_cell_id, rsrp, rsrq = _level(fields)
    meas_time = fields.integer("meas_time", 0, _TIME_HIGH)
    neighbors = []
    while fields.left >= 5:
        neighbors.append(_neighbor(fields))
    ta_meas_time = fields.optional_integer("ta_meas_time", 0, _TIME_HIGH)
    fields.end()
    cell = Cell(
        earfcn, phys_cell_id, rsrp, rsrq, cell_id, network, tac, advance, meas_time, ta_meas_time,
        neighbors=tuple(neighbors),
    )  # fmt: skip
    return ServingMeasurement(status, (cell,))


def _global(fields: Fields, status: int) -> CellMeasurement:
    cells = []
    while fields.left > 1 or not fields.peek().absent:
        cell_id, network, tac = _identity(fields)
        advance = _timing_advance(fields)
        ta_meas_time = fields.integer("ta_meas_time", 0, _TIME_HIGH)
        earfcn, phys_cell_id, rsrp, rsrq = _level(fields)
        meas_time = fields.integer("meas_time", 0, _TIME_HIGH)
        serving = fields.integer("serving", 0, 1)
        count = fields.integer("neighbor_count", 0)
        neighbors = tuple(_neighbor(fields) for _ in range(count))
        cells.append(
            Cell(
                earfcn, phys_cell_id, rsrp, rsrq, cell_id, network, tac, advance, meas_time,
                ta_meas_time, serving, neighbors,
            )
        )  # fmt: skip
    return CellMeasurement(status, tuple(cells))


def _identity(fields: Fields) -> tuple[str, str, str]:
    if not fields.peek().quoted:
        raise fields.fail("cell_id", "is not in quotes")
    return fields.hexadecimal("cell_id", 8), plmn_code(fields), fields.hexadecimal("tac", 4)


def _timing_advance(fields: Fields) -> int:
    advance = fields.integer("timing_advance", 0, 65535)
    if 20512 < advance < 65534:  # 65535, and 65534 in places, mean "not known"
        raise fields.fail("timing_advance", f"is {advance}, not in 0..20512 and not 65535")
    return advance


def _level(fields: Fields) -> tuple[int, int, int, int]:
    return (
        fields.integer("earfcn", 0, 2**31 - 1),
        fields.integer("phys_cell_id", 0, 503),
        fields.integer("rsrp", -_INDEX, _INDEX - 1),
        fields.integer("rsrq", -_INDEX, _INDEX - 1),
    )


def _neighbor(fields: Fields) -> Neighbor:
    return Neighbor(*_level(fields), fields.integer("time_diff"))


def _notice(line: str, context: str | None) -> CellMeasurementNotice:
    value = read_measurement(line, search_type_of(context))
    return CellMeasurementNotice("%NCELLMEAS", line, value)


def search_type_of(command: str | None) -> int | None:
    """Return the search type of a command line; None for another command, or none."""
    text = read_command(command) if command is not None else None
    if text is None or text.name != "%NCELLMEAS" or text.form not in {Form.EXECUTE, Form.SET}:
        return None
    kind = text.arguments.partition(",")[0].strip()
    if not kind:
        return 0
    return int(kind) if kind in {"0", "1", "2", "3", "4", "5"} else None


register("%NCELLMEAS", _notice)
