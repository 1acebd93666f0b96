"""Signal quality: +CESQ %CESQ %XMONITOR %CONEVAL."""

from at.virtual.command_line import CommandRequest, RequestForm, only
from at.virtual.families import power_saving
from at.virtual.kit import NTN_NB_IOT, Reply, VirtualKit, ok
from at.virtual.radio_world import MeasuredCell


def signal(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """+CESQ: of six fields the nRF91 fills in the last two (3GPP TS 27.007 clause 8.69)."""
    rsrq = rsrp = 255
    cells = kit.cells_in_range()
    if kit.active and cells:
        rsrq, rsrp = cells[0].rsrq_index, cells[0].rsrp_index
    return ok(f"+CESQ: 99,99,255,255,{rsrq},{rsrp}")


def signal_notices(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%CESQ: a subscription that has no read form."""
    kit.session.subscriptions.cesq = request.number(0, 0, 1)
    if kit.session.subscriptions.cesq and kit.active and kit.cells_in_range():
        notify_signal(kit)
    return ok()


def notify_signal(kit: VirtualKit) -> None:
    """Print %CESQ with the level of the serving cell."""
    serving = kit.cells_in_range()[0]
    rsrp, rsrq = serving.rsrp_index, serving.rsrq_index
    bands = sum(rsrp > edge for edge in (20, 40, 60, 80)), sum(rsrq > e for e in (7, 14, 21, 28))
    kit.notify(f"%CESQ: {rsrp},{bands[0]},{rsrq},{bands[1]}")


def monitor(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%XMONITOR: the serving cell, once registered."""
    stat = kit.session.registration
    cells = kit.cells_in_range()
    if not kit.registered or not cells:
        return ok(f"%XMONITOR: {stat}")
    serving, cell = cells[0], cells[0].cell
    further = ",0,0,0,0" if kit.access_technology == NTN_NB_IOT else ""
    active_time, periodic_update = power_saving.granted(kit)
    cycle = power_saving.cycle_in_use(kit)
    return ok(
        f'%XMONITOR: {stat},"","","{cell.plmn}","{cell.tac:04X}",{kit.access_technology},'
        f'{cell.band},"{cell.eci:08X}",{cell.pci},{cell.earfcn},{serving.rsrp_index},'
        f'{_snr(kit, serving)},"{cycle}","{active_time}","{periodic_update}",'
        f'"{power_saving.T3412}"{further}'
    )


def _snr(kit: VirtualKit, serving: MeasuredCell) -> int:
    return max(0, serving.snr_index - (kit.faults.whole("interference") or 0))


def evaluate(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%CONEVAL: quality of the connection."""
    if not kit.active:
        return ok("%CONEVAL: 7")
    if not kit.faults.has_sim:
        return ok("%CONEVAL: 2")
    cells = kit.cells_in_range()
    if not cells:
        return ok("%CONEVAL: 1")
    if not kit.registered:
        return ok("%CONEVAL: 6")
    serving, cell = cells[0], cells[0].cell
    energy = 5 + (serving.rsrp_dbm > -110) + (serving.rsrp_dbm > -95)
    return ok(
        f"%CONEVAL: 0,{int(kit.session.connected)},{energy},{serving.rsrp_index},"
        f'{serving.rsrq_index},{_snr(kit, serving)},"{cell.eci:08X}","{cell.plmn}",{cell.pci},'
        f"{cell.earfcn},{cell.band},1,0,{max(-20, min(23, -serving.rsrp_dbm - 90))},1,1,"
        f"{round(15 - serving.rsrp_dbm)}",
        takes_s=kit.delay(0.3),
    )


COMMANDS = {
    "+CESQ": only(signal, RequestForm.RUN),
    "%CESQ": only(signal_notices, RequestForm.SET),
    "%XMONITOR": only(monitor, RequestForm.RUN),
    "%CONEVAL": only(evaluate, RequestForm.RUN),
}
