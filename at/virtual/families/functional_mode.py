"""Functional mode and error format: +CFUN +CMEE. What follows +CFUN is in `registration`.

The delays are those of a recorded nRF9160: OK after 34 ms.
"""

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, tested
from at.virtual.families import power_saving, registration
from at.virtual.families.serial_modem import cloud, gnss
from at.virtual.kit import Reply, VirtualKit, ok
from at.virtual.session import ModemMode, Subscriptions

_NOT_LISTED = ModemMode.RECEIVE_ONLY  # accepted, yet not in the list of the test form
_SWITCHES_GNSS = {
    ModemMode.OFF,
    ModemMode.NORMAL,
    ModemMode.FLIGHT,
    ModemMode.GNSS_OFF,
    ModemMode.GNSS_ON,
}
_SWITCHES_LTE_OFF = {ModemMode.OFF, ModemMode.FLIGHT, ModemMode.LTE_OFF, ModemMode.FLIGHT_UICC_ON}


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
        gnss.switch(kit, on=mode in {ModemMode.NORMAL, ModemMode.GNSS_ON})
    if mode in {ModemMode.NORMAL, ModemMode.LTE_ON}:
        switch_on(kit, mode)
    elif mode in _SWITCHES_LTE_OFF:
        if kit.registered:
            takes_s = kit.delay(1.3)
        _switch_off(kit, mode)
    elif mode in {ModemMode.UICC_OFF, ModemMode.UICC_ON}:
        kit.session.sim_up = mode is ModemMode.UICC_ON and kit.faults.has_sim
    elif mode is ModemMode.RECEIVE_ONLY:
        kit.session.fun = mode
    registration.look_again(kit)
    return ok(takes_s=takes_s)


def switch_on(kit: VirtualKit, mode: ModemMode) -> None:
    """Switch LTE on, and begin to register unless it was on."""
    already = kit.active
    kit.session.fun = mode
    if not already:
        power_saving.flight_mode(kit, on=False)
        registration.begin(kit)


def _switch_off(kit: VirtualKit, mode: ModemMode) -> None:
    session = kit.session
    session.fun = mode
    session.locating = False
    if kit.generation < 2 or mode is ModemMode.OFF:  # else it keeps its session
        cloud.lose(kit)
    registration.end(kit)
    if mode in {ModemMode.OFF, ModemMode.FLIGHT}:
        session.sim_up = False
    if session.measurement is not None:
        kit.cancel(session.measurement_timer)
        session.measurement = None
    if mode is ModemMode.OFF and not kit.is_module:
        session.subscriptions = Subscriptions()
    power_saving.flight_mode(kit, on=True)


def error_format(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CMEE: whether errors have their number; 2 gives texts, on an nRF93M1 alone."""
    if request.form is RequestForm.READ:
        return ok(f"+CMEE: {kit.session.cmee}")
    kit.session.cmee = request.number(0, 0, 2 if kit.is_module else 1)
    return ok()


COMMANDS = {"+CFUN": functional_mode, "+CMEE": tested(error_format, "(0,1)")}
