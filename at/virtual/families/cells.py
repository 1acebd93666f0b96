"""Neighbour cell measurement: %NCELLMEAS %NCELLMEASSTOP."""

from at.virtual.command_line import CommandRequest, RequestForm, only
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.radio_world import MeasuredCell

DEFAULT, LAST_NEIGHBOUR_SEARCH, LAST_SEARCH = 0, 2, 5
MOST_NEIGHBOURS = 17
NO_ADVANCE = 65535
# Seconds that a search takes, by its type; the wider ones take longer.
_TAKES_S = (1.5, 3.0, 6.0, 4.0, 8.0, 12.0)
_FIRST_WITH_TYPES = (1, 3, 4)


def measure(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NCELLMEAS: OK at once, the result as a notice later; one at a time."""
    search = count = 0
    if request.form is RequestForm.SET:
        search = request.number(0, DEFAULT, LAST_SEARCH)
        if search > LAST_NEIGHBOUR_SEARCH:
            count = request.number(1, 2, 15)
        if search and not kit.at_least(*_FIRST_WITH_TYPES):
            return fail()
    if not kit.active or kit.session.measurement is not None or kit.session.locating:
        return fail()
    kit.session.measurement = (search, count)
    seconds = kit.delay(_TAKES_S[search])
    kit.session.measurement_timer = kit.schedule(seconds, lambda: _measured(kit, status=0))
    return ok()


def stop_measuring(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%NCELLMEASSTOP: the notice comes now, with the results so far."""
    if kit.session.measurement is not None:
        kit.cancel(kit.session.measurement_timer)
        kit.schedule(0.0, lambda: _measured(kit, status=2))
    return ok()


def _measured(kit: VirtualKit, *, status: int) -> None:
    if kit.session.measurement is None:
        return
    search, count = kit.session.measurement
    kit.session.measurement = None
    notify_cells(kit, search, count, status)


def notify_cells(kit: VirtualKit, search: int, count: int, status: int = 0) -> None:
    """Print %NCELLMEAS, with fewer cells where it was stopped (status 2)."""
    cells = kit.cells_in_range()
    if status == 2:
        cells = cells[: 1 + len(cells) // 3]
    if not cells:
        kit.notify("%NCELLMEAS: 1")
    elif search <= LAST_NEIGHBOUR_SEARCH:
        kit.notify(f"%NCELLMEAS: {status},{_neighbours(kit, cells)}")
    else:
        kit.notify(f"%NCELLMEAS: {status},{_global_ids(kit, cells[:count], cells[count:])}")


def _neighbours(kit: VirtualKit, cells: list[MeasuredCell]) -> str:
    """Return the serving cell, its neighbours, and when the timing advance was measured."""
    serving, *others = cells
    advance, advance_ms = _timing_advance(kit, serving)
    neighbours = map(_neighbour, others[:MOST_NEIGHBOURS])
    fields = (_identity(serving), advance, _levels(serving), kit.uptime_ms, *neighbours, advance_ms)
    return ",".join(map(str, fields))


def _global_ids(kit: VirtualKit, cells: list[MeasuredCell], rest: list[MeasuredCell]) -> str:
    """Return a block per cell; neighbours without a global id follow the serving cell's block."""
    fields: list[int | str] = []
    for index, measured in enumerate(cells):
        serving = index == 0 and kit.registered
        neighbours = rest[:5] if serving else []
        advance, advance_ms = _timing_advance(kit, measured) if serving else (NO_ADVANCE, 0)
        fields += [_identity(measured), advance, advance_ms, _levels(measured), kit.uptime_ms]
        fields += [int(serving), len(neighbours), *map(_neighbour, neighbours)]
    return ",".join(map(str, fields))


def _identity(measured: MeasuredCell) -> str:
    return f'"{measured.cell.eci:08X}","{measured.cell.plmn}","{measured.cell.tac:04X}"'


def _levels(measured: MeasuredCell) -> str:
    return f"{measured.cell.earfcn},{measured.cell.pci},{measured.rsrp_index},{measured.rsrq_index}"


def _neighbour(measured: MeasuredCell) -> str:
    """Return levels, and milliseconds to the serving cell's time, derived from its number."""
    return f"{_levels(measured)},{measured.cell.pci % 21 - 10}"


def _timing_advance(kit: VirtualKit, measured: MeasuredCell) -> tuple[int, int]:
    """Return the advance and its time of measurement; only a registered modem gets one."""
    if not kit.registered:
        return NO_ADVANCE, 0
    return measured.timing_advance, max(0, kit.uptime_ms - 120)


COMMANDS = {
    "%NCELLMEAS": only(measure, RequestForm.RUN, RequestForm.SET),
    "%NCELLMEASSTOP": only(stop_measuring, RequestForm.RUN),
}
