"""Networks, packet data and settings: +COPS %COPS +CEMODE +CNEC +CGDCONT +CGPADDR %XSYSTEMMODE ...

Registration itself is in `functional_mode`, because +CFUN starts it.
"""

from __future__ import annotations

from at.virtual.command_line import BadRequest, Bare, CommandRequest, RequestForm
from at.virtual.kit import ModemMode, Reply, VirtualKit, fail, ok

_RADIOS_OFF = {ModemMode.OFF, ModemMode.FLIGHT, ModemMode.FLIGHT_UICC_ON}
_RADIO_CONNECTION_ACTIVE = 516
_ADDRESS = "10.160.33.51"
_NAME_SERVERS = "10.160.0.1", "10.160.0.2"
_MTU = 1500
_FAMILIES = {"IP", "IPV6", "IPV4V6", "NON-IP"}


def operators(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+COPS: the operator, the list of a scan, or a choice."""
    if request.form is RequestForm.READ:
        if not kit.registered:
            return ok("+COPS: 0")
        plmn = kit.cells_in_range()[0].cell.plmn
        return ok(f'+COPS: 0,2,"{plmn}",{kit.access_technology}')
    if request.form is RequestForm.TEST:
        if kit.session.connected:
            return fail(_RADIO_CONNECTION_ACTIVE)
        return _scan(kit, request)
    mode = request.number(0, 0, 3)
    if mode == 1:
        request.number(1, 2, 2)
        if not request.text(2).isdigit():
            raise BadRequest
    elif mode == 3:
        request.number(1, 0, 2)
    return ok()


def forced_scan(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%COPS: the list of a scan, also while connected."""
    if request.form is not RequestForm.TEST:
        raise BadRequest
    return _scan(kit, request)


def _scan(kit: VirtualKit, request: CommandRequest) -> Reply:
    networks = {measured.cell.plmn: None for measured in kit.cells_in_range()} if kit.active else {}
    stat = 2 if kit.registered else 1
    entries = ",".join(f'({stat},"","","{plmn}",{kit.access_technology})' for plmn in networks)
    return ok(f"{request.name}: {entries}", takes_s=kit.delay(8.0))


def operation_mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CEMODE: 0 PS mode 2, 2 CS/PS mode 2; a modem without voice has no others."""
    if request.form is RequestForm.READ:
        return ok(f"+CEMODE: {kit.saved.operation_mode}")
    if request.form is RequestForm.TEST:
        return ok("+CEMODE: (0,2)")
    mode = request.number(0, 0, 2)
    if mode == 1:
        raise BadRequest
    kit.saved.operation_mode = mode
    return ok()


def error_notices(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CNEC: 8 errors of mobility management, 16 of session management, 24 both."""
    if request.form is RequestForm.READ:
        return ok(f"+CNEC: {kit.session.subscriptions.cnec}")
    if request.form is RequestForm.TEST:
        return ok("+CNEC: (0,8,16,24)")
    n = request.number(0, 0, 24, default=0)
    if n % 8:
        raise BadRequest
    kit.session.subscriptions.cnec = n
    return ok()


def contexts(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGDCONT."""
    defined = kit.session.contexts
    if request.form is RequestForm.READ:
        shown = defined or {0: ("", "")}
        return ok(*(_context(kit, cid, *shown[cid]) for cid in sorted(shown)))
    if request.form is RequestForm.TEST:
        return ok('+CGDCONT: (0-10),"IP",,,(0),(0)')
    cid = request.number(0, 0, 10)
    if len(request.parameters) == 1:
        defined.pop(cid, None)
        return ok()
    family = request.text(1)
    if family.upper() not in _FAMILIES:
        raise BadRequest
    defined[cid] = (family, request.text(2, default=""))
    return ok()


def _context(kit: VirtualKit, cid: int, family: str, name: str) -> str:
    address = _ADDRESS if cid == 0 and kit.registered else ""
    return f'+CGDCONT: {cid},"{family}","{name}","{address}",0,0'


def addresses(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGPADDR."""
    if request.form is RequestForm.SET:
        request.number(0, 0, 10)
    elif request.form is not RequestForm.RUN:
        raise BadRequest
    address = _ADDRESS if kit.registered else ""
    return ok(f'+CGPADDR: 0,"{address}"')


def activation(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGACT."""
    if request.form is RequestForm.READ:
        return ok(f"+CGACT: 0,{int(kit.registered)}")
    if request.form is RequestForm.TEST:
        return ok("+CGACT: (0,1)")
    request.number(0, 0, 1)
    return ok()


def attachment(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGATT: attaching and detaching by hand is refused."""
    if request.form is RequestForm.READ:
        return ok(f"+CGATT: {int(kit.registered)}")
    if request.form is RequestForm.TEST:
        return ok("+CGATT: (0,1)")
    return fail()


def dynamic_parameters(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGCONTRDP: of an active context; unknown fields are empty."""
    if request.form not in {RequestForm.SET, RequestForm.RUN}:
        raise BadRequest
    if request.form is RequestForm.SET and request.number(0, 0, 10):
        return fail()  # only context 0 can be active
    if not kit.registered:
        return fail()
    first, second = _NAME_SERVERS
    name = kit.session.contexts[0][1]
    return ok(f'+CGCONTRDP: 0,,"{name}","","","{first}","{second}",,,,,{_MTU}')


def packet_events(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGEREP."""
    if request.form is RequestForm.READ:
        return ok(f"+CGEREP: {kit.session.subscriptions.cgerep},0")
    if request.form is RequestForm.TEST:
        return ok("+CGEREP: (0,1),(0)")
    kit.session.subscriptions.cgerep = request.number(0, 0, 1)
    return ok()


def data_profile(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XDATAPRFL: from 0 least power, 2 default, to 4 most performance."""
    if request.form is RequestForm.READ:
        return ok(f"%XDATAPRFL: {kit.saved.data_profile}")
    if request.form is not RequestForm.SET:
        raise BadRequest
    kit.saved.data_profile = request.number(0, 0, 4)
    return ok()


def system_mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XSYSTEMMODE: the radios in use; it changes only while they are off."""
    if request.form is RequestForm.READ:
        return ok("%XSYSTEMMODE: " + ",".join(map(str, kit.saved.system_mode)))
    if request.form is RequestForm.TEST:
        return ok("%XSYSTEMMODE: (0,1),(0,1),(0,1),(0-4)")
    lte_m, nb_iot, gnss = (request.number(index, 0, 1) for index in range(3))
    preference = request.number(3, 0, 4)
    if kit.session.fun not in _RADIOS_OFF or not (lte_m or nb_iot or gnss):
        return fail()
    kit.saved.system_mode = (lte_m, nb_iot, gnss, preference)
    return ok(takes_s=kit.delay(0.002))


def battery(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XVBAT, in millivolts."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    return ok("%XVBAT: 5054")


def temperature(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XTEMP, in degrees Celsius."""
    if request.form is RequestForm.READ:
        return ok("%XTEMP: 24")
    kit.session.subscriptions.xtemp = request.number(0, 0, 1)
    return ok()


def domain_events(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%MDMEV: mode 2 needs a later firmware than mode 1."""
    if request.form is not RequestForm.SET or not kit.at_least(1, 3, 0):
        raise BadRequest
    kit.session.subscriptions.mdmev = request.number(0, 0, 2 if kit.at_least(2, 0, 0) else 1)
    return ok()


def connection_statistics(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XCONNSTAT."""
    if request.form is RequestForm.READ:
        return ok("%XCONNSTAT: 0,0,12,34,708,291")
    request.number(0, 0, 1)
    return ok()


def current_band(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XCBAND: the band in use, 0 while there is none; the test form lists all."""
    if request.form is RequestForm.TEST:
        return ok("%XCBAND: (1,2,3,4,5,8,12,13,18,19,20,25,26,28,66)")
    if request.form is not RequestForm.RUN:
        raise BadRequest
    cells = kit.cells_in_range()
    return ok(f"%XCBAND: {cells[0].cell.band if kit.registered and cells else 0}")


def factory_reset(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XFACTORYRESET: the manual does not say whether 0 erases credentials; here it does."""
    if kit.session.fun not in _RADIOS_OFF:
        return fail()
    everything = request.number(0, 0, 1) == 0
    kit.saved.system_mode = (1, 0, 1, 0)
    if everything:
        kit.saved.credentials.clear()
    return ok(takes_s=kit.delay(1.0))


def authenticated_access(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XSUDO: refused, because the virtual modem accepts no key."""
    request.number(0, 1, 4096)
    if not request.given(1) or isinstance(request.parameters[1], Bare | int):
        raise BadRequest
    return fail(520)


COMMANDS = {
    "+COPS": operators,
    "%COPS": forced_scan,
    "+CEMODE": operation_mode,
    "+CNEC": error_notices,
    "%XDATAPRFL": data_profile,
    "%XSYSTEMMODE": system_mode,
    "%XVBAT": battery,
    "%XTEMP": temperature,
    "%MDMEV": domain_events,
    "%XCONNSTAT": connection_statistics,
    "%XCBAND": current_band,
    "%XFACTORYRESET": factory_reset,
    "%XSUDO": authenticated_access,
    "+CGDCONT": contexts,
    "+CGPADDR": addresses,
    "+CGACT": activation,
    "+CGATT": attachment,
    "+CGCONTRDP": dynamic_parameters,
    "+CGEREP": packet_events,
}
