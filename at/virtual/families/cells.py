"""What the modem hears: +CESQ %CESQ %XMONITOR %NCELLMEAS %NCELLMEASSTOP %CONEVAL."""

from __future__ import annotations

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm
from at.virtual.families import power, sleep
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.radio_world import MeasuredCell

DEFAULT, LAST_NEIGHBOUR_SEARCH, LAST_SEARCH = 0, 2, 5
MOST_NEIGHBOURS = 17
NO_ADVANCE = 65535
# Seconds that a search takes, by its type; the wider ones take their time.
_TAKES_S = (1.5, 3.0, 6.0, 4.0, 8.0, 12.0)
_FIRST_WITH_TYPES = (1, 3, 4)


def signal(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CESQ: of six fields the nRF91 knows the last two (3GPP TS 27.007 clause 8.69)."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    rsrq = rsrp = 255
    heard = kit.cells_in_range()
    if kit.active and heard:
        rsrq, rsrp = heard[0].rsrq_index, heard[0].rsrp_index
    return ok(f"+CESQ: 99,99,255,255,{rsrq},{rsrp}")


def signal_notices(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%CESQ: a subscription, never read."""
    if request.form is not RequestForm.SET:
        raise BadRequest
    kit.session.subscriptions.cesq = request.number(0, 0, 1)
    if kit.session.subscriptions.cesq and kit.active and kit.cells_in_range():
        power.notify_signal(kit)
    return ok()


def monitor(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XMONITOR: all about the serving cell, once registered."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    stat = kit.session.registration
    heard = kit.cells_in_range()
    if not kit.registered or not heard:
        return ok(f"%XMONITOR: {stat}")
    found, cell = heard[0], heard[0].cell
    active_time, periodic_update = sleep.granted(kit)
    return ok(
        f'%XMONITOR: {stat},"","","{cell.plmn}","{cell.tac:04X}",{kit.access_technology},'
        f'{cell.band},"{cell.eci:08X}",{cell.pci},{cell.earfcn},{found.rsrp_index},'
        f'{found.snr_index},"{sleep.cycle_in_use(kit)}","{active_time}","{periodic_update}",'
        f'"{sleep.T3412}"'
    )


def evaluate(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%CONEVAL: how well the modem is connected."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    if not kit.active:
        return ok("%CONEVAL: 7")
    if "no-sim" in kit.faults:
        return ok("%CONEVAL: 2")
    heard = kit.cells_in_range()
    if not heard:
        return ok("%CONEVAL: 1")
    if not kit.registered:
        return ok("%CONEVAL: 6")
    found, cell = heard[0], heard[0].cell
    energy = 5 + (found.rsrp_dbm > -110) + (found.rsrp_dbm > -95)
    return ok(
        f"%CONEVAL: 0,{int(kit.session.connected)},{energy},{found.rsrp_index},"
        f'{found.rsrq_index},{found.snr_index},"{cell.eci:08X}","{cell.plmn}",{cell.pci},'
        f"{cell.earfcn},{cell.band},1,0,{max(-20, min(23, -found.rsrp_dbm - 90))},1,1,"
        f"{round(15 - found.rsrp_dbm)}",
        takes_s=kit.delay(0.3),
    )


def measure(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NCELLMEAS: OK at once, the result as a notice later; one at a time."""
    if request.form not in {RequestForm.RUN, RequestForm.SET}:
        raise BadRequest
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


def stop_measuring(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NCELLMEASSTOP: the notice comes now, with what there is."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
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
    """Print %NCELLMEAS, with less in it where it was broken off (status 2)."""
    heard = kit.cells_in_range()
    if status == 2:
        heard = heard[: 1 + len(heard) // 3]
    if not heard:
        kit.notify("%NCELLMEAS: 1")
    elif search <= LAST_NEIGHBOUR_SEARCH:
        kit.notify(f"%NCELLMEAS: {status},{_neighbours(kit, heard)}")
    else:
        kit.notify(f"%NCELLMEAS: {status},{_global_ids(kit, heard[:count], heard[count:])}")


def _neighbours(kit: VirtualKit, heard: list[MeasuredCell]) -> str:
    """Return the serving cell, its neighbours, and when the timing advance was measured."""
    advance, advance_ms = _timing_advance(kit, heard[0])
    fields = [
        _identity(heard[0]),
        str(advance),
        _levels(heard[0]),
        str(kit.uptime_ms),
        *(
            f"{_levels(found)},{_time_difference(found)}"
            for found in heard[1 : MOST_NEIGHBOURS + 1]
        ),
        str(advance_ms),
    ]
    return ",".join(fields)


def _global_ids(kit: VirtualKit, cells: list[MeasuredCell], rest: list[MeasuredCell]) -> str:
    """Return a block a cell. Of the serving one the neighbours without an id follow its block."""
    blocks = []
    for place, found in enumerate(cells):
        serving = place == 0 and kit.registered
        neighbours = rest[:5] if serving else []
        advance, advance_ms = _timing_advance(kit, found) if serving else (NO_ADVANCE, 0)
        fields = [
            _identity(found),
            str(advance),
            str(advance_ms),
            _levels(found),
            str(kit.uptime_ms),
            str(int(serving)),
            str(len(neighbours)),
            *(f"{_levels(other)},{_time_difference(other)}" for other in neighbours),
        ]
        blocks.append(",".join(fields))
    return ",".join(blocks)


def _identity(found: MeasuredCell) -> str:
    return f'"{found.cell.eci:08X}","{found.cell.plmn}","{found.cell.tac:04X}"'


def _levels(found: MeasuredCell) -> str:
    return f"{found.cell.earfcn},{found.cell.pci},{found.rsrp_index},{found.rsrq_index}"


def _time_difference(found: MeasuredCell) -> int:
    """Milliseconds between the measurements of two cells: made up from the cell's number."""
    return found.cell.pci % 21 - 10


def _timing_advance(kit: VirtualKit, found: MeasuredCell) -> tuple[int, int]:
    """Return the advance and when it was measured: the network tells it to a registered modem."""
    if not kit.registered:
        return NO_ADVANCE, 0
    return found.timing_advance, max(0, kit.uptime_ms - 120)


COMMANDS = {
    "+CESQ": signal,
    "%CESQ": signal_notices,
    "%XMONITOR": monitor,
    "%CONEVAL": evaluate,
    "%NCELLMEAS": measure,
    "%NCELLMEASSTOP": stop_measuring,
}
