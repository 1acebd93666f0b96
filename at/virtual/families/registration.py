"""Registration: +CEREG +CNEC, and all that follows when the modem is switched on, step by step.

A network denies registration, or the SIM is missing, by the faults "not-registered" and "no-sim".
The delays are those of a recorded nRF9160: searching after 1.2 s, registered after 3.9 s, idle ten
seconds after the last traffic.
"""

from collections.abc import Callable

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, tested
from at.virtual.families import clock, network, power_saving, signal
from at.virtual.kit import Reply, VirtualKit, ok
from at.virtual.session import ModemMode

HOME, SEARCHING, NO_SIM = 1, 2, 90
_UPDATE_S = 2.0  # how long the connection of a tracking area update lasts
_NO_SUITABLE_CELL = 15  # EMM cause of TS 24.301: no suitable cells in the tracking area
_EVENT_S = 5.0  # how often trouble that lasts is told again (chosen)
_RESELECTION_S = 10.0  # how often the modem looks for a better cell


def registration(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CEREG."""
    subscriptions = kit.session.subscriptions
    if request.form is RequestForm.READ:
        return ok(f"+CEREG: {subscriptions.cereg},{_registration(kit, subscriptions.cereg)}")
    subscriptions.cereg = request.number(0, 0, 5)
    return ok()


def error_notices(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CNEC: 8 errors of mobility management, 16 of session management, 24 both."""
    if request.form is RequestForm.READ:
        return ok(f"+CNEC: {kit.session.subscriptions.cnec}")
    n = request.number(0, 0, 24, default=0)
    if n % 8:
        raise BadRequest
    kit.session.subscriptions.cnec = n
    return ok()


def begin(kit: VirtualKit) -> None:
    """Start the SIM and search a network, as long as the kit is not switched off meanwhile."""

    def step(seconds: float, action: Callable[[VirtualKit], None]) -> None:
        _schedule_if_active(kit, kit.delay(seconds), action)

    if not kit.faults.has_sim:
        step(0.4, _no_sim)
        return
    step(0.3, _sim_ready)
    if kit.faults.event:
        step(0.5, _event)
    step(1.2, _searching)
    if kit.faults.registration is None and kit.is_served:
        step(3.4, _connected)
        step(3.7, _network_time)
        step(3.9, _registered)
        step(13.9, _idle)


def _schedule_if_active(
    kit: VirtualKit, seconds: float, action: Callable[[VirtualKit], None]
) -> None:
    kit.schedule_in_session(seconds, lambda: action(kit) if kit.active else None)


def end(kit: VirtualKit) -> None:
    """Release the connection and leave the network."""
    _idle(kit)
    if kit.session.registration:
        kit.session.registration = 0
        _notify_registration(kit)


def _sim_ready(kit: VirtualKit) -> None:
    kit.session.sim_up = True
    if kit.session.subscriptions.xsim:
        kit.notify("%XSIM: 1")


def _no_sim(kit: VirtualKit) -> None:
    if kit.session.subscriptions.xsim:
        kit.notify("%XSIM: 0")
    kit.session.registration = NO_SIM
    _notify_registration(kit)


def _event(kit: VirtualKit) -> None:
    """Tell of the modem's own trouble, again and again; of its supply or heat it goes offline."""
    session = kit.session
    if session.subscriptions.mdmev:
        kit.notify(f"%MDMEV: {kit.faults.event}")
    if kit.faults.goes_offline:
        end(kit)
        session.fun = ModemMode.FLIGHT
        session.sim_up = False
    _schedule_if_active(kit, _EVENT_S, _event)


def _searching(kit: VirtualKit) -> None:
    fixed = kit.faults.registration
    stat = SEARCHING if fixed is None else fixed
    kit.session.registration = stat
    if stat == 3:
        cause = kit.faults.reject
        kit.session.reject = (0, _NO_SUITABLE_CELL if cause is None else cause)
        cnec = kit.session.subscriptions.cnec
        if cnec in {8, 24}:
            kit.notify(f"+CNEC_EMM: {kit.session.reject[1]}")
        esm_cause = kit.faults.whole("apn-refused")
        if cnec in {16, 24} and esm_cause is not None:
            kit.notify(f"+CNEC_ESM: {esm_cause},0")
    _notify_registration(kit)


def _connected(kit: VirtualKit) -> None:
    power_saving.wake(kit)
    kit.session.connected = True
    network.notify_connection(kit)


def _idle(kit: VirtualKit) -> None:
    if not kit.session.connected:
        return
    kit.session.connected = False
    network.notify_connection(kit)
    power_saving.start_timers(kit, _update)


def _update(kit: VirtualKit) -> None:
    """Do a tracking area update: connect for a short time."""
    _connected(kit)
    kit.schedule_in_session(kit.delay(_UPDATE_S), lambda: _idle(kit))


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
        signal.notify_signal(kit)
    power_saving.notify_cycle(kit)
    kit.session.serving_eci = kit.cells_in_range()[0].cell.eci
    _schedule_reselection(kit)
    look_again(kit)


def look_again(kit: VirtualKit) -> None:
    """Let a provisioning session go on if the mode or the network is what it waits for."""
    if kit.session.provisioning is not None:
        kit.session.provisioning.mode_changed()


def _schedule_reselection(kit: VirtualKit) -> None:
    """Reselect the strongest cell from time to time, as long as the kit is registered."""
    session = kit.session

    def reselect() -> None:
        cells = kit.cells_in_range()
        if not kit.registered or not cells:
            return
        if cells[0].cell.eci != session.serving_eci:
            session.serving_eci = cells[0].cell.eci
            if session.subscriptions.cereg >= 2:
                _notify_registration(kit)
            if session.subscriptions.cesq:
                signal.notify_signal(kit)
        _schedule_reselection(kit)

    kit.cancel(session.reselection_timer)  # of an earlier registration
    session.reselection_timer = kit.schedule_in_session(_RESELECTION_S, reselect)


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
    saves_power = bool(kit.saved.psm[0]) or not kit.is_module
    if level >= 4 and kit.registered and saves_power:
        fields += ["", "", *(f'"{timer}"' for timer in power_saving.granted(kit))]
    return ",".join(fields)


def extended_error(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """+CEER: the module of the last failure and its number; chosen where there was none."""
    cause = kit.session.reject
    esm_cause = kit.faults.whole("apn-refused")
    if cause and esm_cause is not None:
        return ok(f'+CEER: "ESM {esm_cause}"')
    return ok(f'+CEER: "{f"EMM {cause[1]}" if cause else "OTHER 0"}"')


COMMANDS = {
    "+CEER": only(extended_error, RequestForm.RUN),
    "+CEREG": tested(registration, "(0-5)"),
    "+CNEC": tested(error_notices, "(0,8,16,24)"),
}
