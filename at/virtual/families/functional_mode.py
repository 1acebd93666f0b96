"""Power and registration: +CFUN, and the notices +CEREG, +CSCON, %XTIME, %CESQ that follow.

The delays are those of a recorded nRF9160: OK after 34 ms, searching after 1.2 s, registered after
3.9 s, idle ten seconds after the last traffic.
"""

from __future__ import annotations

from collections.abc import Callable

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm
from at.virtual.families import clock, serial_modem_gnss, sleep
from at.virtual.kit import ModemMode, Reply, Subscriptions, VirtualKit, ok

_NOT_LISTED = ModemMode.RECEIVE_ONLY  # accepted, yet not in the list of the test form
_SWITCHES_GNSS = {
    ModemMode.OFF,
    ModemMode.NORMAL,
    ModemMode.FLIGHT,
    ModemMode.GNSS_OFF,
    ModemMode.GNSS_ON,
}
_SWITCHES_LTE_OFF = {
    ModemMode.OFF,
    ModemMode.FLIGHT,
    ModemMode.LTE_OFF,
    ModemMode.FLIGHT_UICC_ON,
}
HOME, SEARCHING, NO_SIM = 1, 2, 90
_UPDATE_S = 2.0  # how long the connection of a tracking area update lasts
_UE_REJECTED = 15  # EMM cause of TS 24.301: no suitable cells in the tracking area
_RESELECTION_S = 10.0  # how often the modem looks for a better cell


def functional_mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CFUN."""
    if request.form is RequestForm.READ:
        return ok(f"+CFUN: {kit.session.fun}")
    if request.form is RequestForm.TEST:
        listed = (str(mode.value) for mode in ModemMode if mode is not _NOT_LISTED)
        return ok(f"+CFUN: ({','.join(listed)})")
    number = request.number(0, 0, max(ModemMode))
    if len(request.parameters) != 1 or number not in set(ModemMode):
        raise BadRequest
    mode = ModemMode(number)
    takes_s = kit.delay(0.034)
    if mode in _SWITCHES_GNSS:
        serial_modem_gnss.switch(kit, on=mode in {ModemMode.NORMAL, ModemMode.GNSS_ON})
    if mode in {ModemMode.NORMAL, ModemMode.LTE_ON}:
        _switch_on(kit, mode)
    elif mode in _SWITCHES_LTE_OFF:
        if kit.registered:
            takes_s = kit.delay(1.3)
        _switch_off(kit, mode)
    elif mode in {ModemMode.UICC_OFF, ModemMode.UICC_ON}:
        kit.session.sim_up = mode is ModemMode.UICC_ON and "no-sim" not in kit.faults
    elif mode is ModemMode.RECEIVE_ONLY:
        kit.session.fun = mode
    return ok(takes_s=takes_s)


def _switch_on(kit: VirtualKit, mode: ModemMode) -> None:
    session = kit.session
    already = kit.active
    session.fun = mode
    if already:
        return
    sleep.flight_mode(kit, on=False)

    def step(seconds: float, action: Callable[[VirtualKit], None]) -> None:
        def unless_switched_off() -> None:
            if kit.session is session and kit.active:
                action(kit)

        kit.schedule(kit.delay(seconds), unless_switched_off)

    if "no-sim" in kit.faults:
        step(0.4, _no_sim)
        return
    step(0.3, _sim_ready)
    step(1.2, _searching)
    if "not-registered" not in kit.faults and kit.cells_in_range():
        step(3.4, _connected)
        step(3.7, _network_time)
        step(3.9, _registered)
        step(13.9, _idle)


def _switch_off(kit: VirtualKit, mode: ModemMode) -> None:
    session = kit.session
    session.fun = mode
    session.cloud_ready = session.locating = False
    _idle(kit)
    if session.registration:
        session.registration = 0
        _notify_registration(kit)
    if mode in {ModemMode.OFF, ModemMode.FLIGHT}:
        session.sim_up = False
    if session.measurement is not None:
        kit.cancel(session.measurement_timer)
        session.measurement = None
    if mode is ModemMode.OFF:
        session.subscriptions = Subscriptions()
    sleep.flight_mode(kit, on=True)


def _sim_ready(kit: VirtualKit) -> None:
    kit.session.sim_up = True
    if kit.session.subscriptions.xsim:
        kit.notify("%XSIM: 1")


def _no_sim(kit: VirtualKit) -> None:
    if kit.session.subscriptions.xsim:
        kit.notify("%XSIM: 0")
    kit.session.registration = NO_SIM
    _notify_registration(kit)


def _searching(kit: VirtualKit) -> None:
    stat = SEARCHING
    if "not-registered" in kit.faults:
        stat = int(kit.faults.number("not-registered"))
    kit.session.registration = stat
    if stat == 3:
        kit.session.reject = (0, _UE_REJECTED)
        if kit.session.subscriptions.cnec in {8, 24}:
            kit.notify(f"+CNEC_EMM: {_UE_REJECTED}")
    _notify_registration(kit)


def _connected(kit: VirtualKit) -> None:
    sleep.wake(kit)
    kit.session.connected = True
    if kit.session.subscriptions.cscon:
        kit.notify("+CSCON: " + _connection(kit))


def _idle(kit: VirtualKit) -> None:
    if not kit.session.connected:
        return
    kit.session.connected = False
    if kit.session.subscriptions.cscon:
        kit.notify("+CSCON: " + _connection(kit))
    sleep.start_timers(kit, _update)


def _update(kit: VirtualKit) -> None:
    """Do a tracking area update: connect for a short time."""
    session = kit.session
    _connected(kit)

    def done() -> None:
        if kit.session is session:
            _idle(kit)

    kit.schedule(kit.delay(_UPDATE_S), done)


def _network_time(kit: VirtualKit) -> None:
    if "no-time" not in kit.faults:
        clock.network_time(kit)


def _registered(kit: VirtualKit) -> None:
    subscriptions = kit.session.subscriptions
    kit.session.registration = HOME
    kit.session.contexts.setdefault(0, ("IP", "iot.example"))
    if subscriptions.mdmev:
        kit.notify("%MDMEV: SEARCH STATUS 2")
    if subscriptions.cgerep:
        kit.notify("+CGEV: ME PDN ACT 0")
    _notify_registration(kit)
    if subscriptions.cesq:
        notify_signal(kit)
    sleep.notify_cycle(kit)
    kit.session.serving_eci = kit.cells_in_range()[0].cell.eci
    _schedule_reselection(kit)


def _schedule_reselection(kit: VirtualKit) -> None:
    """Reselect the strongest cell from time to time, as long as the kit is registered."""
    session = kit.session

    def reselect() -> None:
        cells = kit.cells_in_range()
        if kit.session is not session or not kit.registered or not cells:
            return
        if cells[0].cell.eci != session.serving_eci:
            session.serving_eci = cells[0].cell.eci
            if session.subscriptions.cereg >= 2:
                _notify_registration(kit)
            if session.subscriptions.cesq:
                notify_signal(kit)
        session.reselection_timer = kit.schedule(_RESELECTION_S, reselect)

    kit.cancel(session.reselection_timer)  # of an earlier registration
    session.reselection_timer = kit.schedule(_RESELECTION_S, reselect)


def notify_signal(kit: VirtualKit) -> None:
    """Print %CESQ with the level of the serving cell."""
    serving = kit.cells_in_range()[0]
    rsrp, rsrq = serving.rsrp_index, serving.rsrq_index
    bands = sum(rsrp > edge for edge in (20, 40, 60, 80)), sum(rsrq > e for e in (7, 14, 21, 28))
    kit.notify(f"%CESQ: {rsrp},{bands[0]},{rsrq},{bands[1]}")


def _notify_registration(kit: VirtualKit) -> None:
    level = kit.session.subscriptions.cereg
    if level:
        kit.notify("+CEREG: " + _registration(kit, level))


def _registration(kit: VirtualKit, level: int) -> str:
    """Return the fields of +CEREG after <n>, those that the level <n> has."""
    session = kit.session
    fields = [str(session.registration)]
    cells = kit.cells_in_range() if session.registration in {HOME, SEARCHING, 5} else []
    if level >= 2 and cells:
        cell = cells[0].cell
        fields += [f'"{cell.tac:04X}"', f'"{cell.eci:08X}"', str(kit.access_technology)]
    elif level >= 2 and session.reject:
        fields += ["", "", ""]
    if level in {3, 5} and session.reject and session.registration == 3:
        fields += [str(part) for part in session.reject]
    if level >= 4 and kit.registered:
        fields += ["", "", *(f'"{timer}"' for timer in sleep.granted(kit))]
    return ",".join(fields)


def _connection(kit: VirtualKit) -> str:
    level = kit.session.subscriptions.cscon
    if not kit.session.connected:
        return "0"
    return ("1", "1", "1,7", "1,7,4")[level]


def registration(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CEREG."""
    subscriptions = kit.session.subscriptions
    if request.form is RequestForm.READ:
        return ok(f"+CEREG: {subscriptions.cereg},{_registration(kit, subscriptions.cereg)}")
    if request.form is RequestForm.TEST:
        return ok("+CEREG: (0-5)")
    subscriptions.cereg = request.number(0, 0, 5)
    return ok()


def connection(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CSCON."""
    subscriptions = kit.session.subscriptions
    if request.form is RequestForm.READ:
        return ok(f"+CSCON: {subscriptions.cscon},{_connection(kit)}")
    if request.form is RequestForm.TEST:
        return ok("+CSCON: (0,1,2,3)")
    subscriptions.cscon = request.number(0, 0, 3)
    return ok()


COMMANDS = {"+CFUN": functional_mode, "+CEREG": registration, "+CSCON": connection}
