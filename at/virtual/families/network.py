"""SIM, networks, contexts and the modem's settings: +CPIN +CIMI %XICCID +COPS +CGDCONT and more."""

from __future__ import annotations

from at.virtual.families import power
from at.virtual.kit import Answer, Kit, fail, ok
from at.virtual.request import BadRequest, Bare, Form, Request
from at.virtual.state import Saved

SIM_NOT_INSERTED = 10
_INACTIVE = {0, 4, 44}
_ADDRESS = "10.160.33.51"
_CYCLE, _WINDOW = "0010", "0011"
_FAMILIES = {"IP", "IPV6", "IPV4V6", "NON-IP"}


def pin(kit: Kit, request: Request) -> Answer:
    """+CPIN: an error until the SIM is up."""
    if request.form is not Form.READ:
        raise BadRequest
    return ok("+CPIN: READY") if kit.session.sim_up else _no_sim(kit)


def subscriber(kit: Kit, request: Request) -> Answer:
    """+CIMI: the IMSI, of the test network 001 01."""
    if request.form is not Form.RUN:
        raise BadRequest
    return ok(f"00101{kit.saved.imei[4:14]}") if kit.session.sim_up else _no_sim(kit)


def card(kit: Kit, request: Request) -> Answer:
    """%XICCID."""
    if request.form is not Form.RUN:
        raise BadRequest
    if not kit.session.sim_up:
        return _no_sim(kit)
    return ok(f"%XICCID: 8999900{kit.saved.imei[2:14]}F")


def sim_state(kit: Kit, request: Request) -> Answer:
    """%XSIM."""
    if request.form is Form.READ:
        return ok(f"%XSIM: {int(kit.session.sim_up)}")
    kit.session.subscriptions.xsim = request.number(0, 0, 1)
    return ok()


def _no_sim(kit: Kit) -> Answer:
    return fail(SIM_NOT_INSERTED) if "no-sim" in kit.faults else fail()


def operators(kit: Kit, request: Request) -> Answer:
    """+COPS: the operator, the list of a scan, or a choice."""
    if request.form is Form.READ:
        if not kit.registered:
            return ok("+COPS: 0")
        plmn = kit.heard()[0].cell.plmn
        return ok(f'+COPS: 0,2,"{plmn}",{power.access_technology(kit)}')
    if request.form is Form.TEST:
        found = {heard.cell.plmn: None for heard in kit.heard()} if kit.active else {}
        stat = 2 if kit.registered else 1
        technology = power.access_technology(kit)
        entries = ",".join(f'({stat},"","","{plmn}",{technology})' for plmn in found)
        return ok(f"+COPS: {entries}", takes_s=kit.delay(8.0))
    mode = request.number(0, 0, 3)
    if mode == 1:
        request.number(1, 2, 2)
        if not request.text(2).isdigit():
            raise BadRequest
    elif mode == 3:
        request.number(1, 0, 2)
    return ok()


def contexts(kit: Kit, request: Request) -> Answer:
    """+CGDCONT."""
    defined = kit.session.contexts
    if request.form is Form.READ:
        shown = defined or {0: ("", "")}
        return ok(*(_context(kit, cid, *shown[cid]) for cid in sorted(shown)))
    if request.form is Form.TEST:
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


def _context(kit: Kit, cid: int, family: str, name: str) -> str:
    address = _ADDRESS if cid == 0 and kit.registered else ""
    return f'+CGDCONT: {cid},"{family}","{name}","{address}",0,0'


def addresses(kit: Kit, request: Request) -> Answer:
    """+CGPADDR."""
    if request.form is Form.SET:
        request.number(0, 0, 10)
    elif request.form is not Form.RUN:
        raise BadRequest
    address = _ADDRESS if kit.registered else ""
    return ok(f'+CGPADDR: 0,"{address}"')


def activation(kit: Kit, request: Request) -> Answer:
    """+CGACT."""
    if request.form is Form.READ:
        return ok(f"+CGACT: 0,{int(kit.registered)}")
    request.number(0, 0, 1)
    return ok()


def system_mode(kit: Kit, request: Request) -> Answer:
    """%XSYSTEMMODE: which radios are used; changed in flight mode alone."""
    if request.form is Form.READ:
        return ok("%XSYSTEMMODE: " + ",".join(map(str, kit.saved.system_mode)))
    if request.form is Form.TEST:
        return ok("%XSYSTEMMODE: (0,1),(0,1),(0,1),(0-4)")
    lte_m, nb_iot, gnss = (request.number(place, 0, 1) for place in range(3))
    preference = request.number(3, 0, 4)
    if kit.session.fun not in _INACTIVE or not (lte_m or nb_iot or gnss):
        return fail()
    kit.saved.system_mode = (lte_m, nb_iot, gnss, preference)
    return ok(takes_s=kit.delay(0.002))


def battery(_kit: Kit, request: Request) -> Answer:
    """%XVBAT, in millivolts."""
    if request.form is not Form.RUN:
        raise BadRequest
    return ok("%XVBAT: 5054")


def temperature(kit: Kit, request: Request) -> Answer:
    """%XTEMP, in degrees Celsius."""
    if request.form is Form.READ:
        return ok("%XTEMP: 24")
    kit.session.subscriptions.xtemp = request.number(0, 0, 1)
    return ok()


def power_saving(kit: Kit, request: Request) -> Answer:
    """+CPSMS: with no parameter at all it is off, and the timers are the modem's own again."""
    mode, *timers = kit.saved.psm
    if request.form is Form.READ:
        return ok(f'+CPSMS: {mode},,,"{timers[0]}","{timers[1]}"')
    wanted = _bits(request, 3, 8), _bits(request, 4, 8)
    mode = request.number(0, 0, 1, 0)
    defaults = Saved.fresh(kit.options).psm[1:]
    if mode or not request.given(0):
        timers = [given or own for given, own in zip(wanted, defaults, strict=True)]
    kit.saved.psm = (mode, timers[0], timers[1])
    return ok()


def paging_cycle(kit: Kit, request: Request) -> Answer:
    """+CEDRXS: 0 off, 1 on, 2 on with notices, 3 off and forgotten."""
    cycles = kit.saved.edrx
    if request.form is Form.READ:
        return ok(*(f'+CEDRXS: {act},"{cycle}"' for act, cycle in sorted(cycles.items())))
    mode = request.number(0, 0, 3)
    cycle = _bits(request, 2, 4)
    if mode in {0, 3}:
        cycles.clear()
    elif request.given(1):
        act = str(request.number(1, 4, 5))
        cycles[act] = cycle or cycles.get(act) or _CYCLE
    kit.session.subscriptions.cedrxp = int(mode == 2)
    return ok()


def paging_cycle_in_use(kit: Kit, request: Request) -> Answer:
    """+CEDRXRDP: the network here grants what is asked for, with a window of its own."""
    if request.form is not Form.RUN:
        raise BadRequest
    act = {power.LTE_M: "4", power.NB_IOT: "5"}[power.access_technology(kit)]
    cycle = kit.saved.edrx.get(act)
    if cycle is None or not kit.registered:
        return ok("+CEDRXRDP: 0")
    return ok(f'+CEDRXRDP: {act},"{cycle}","{cycle}","{_WINDOW}"')


def _bits(request: Request, place: int, count: int) -> str:
    """Return a parameter of `count` bits, "" where it is empty. Raises BadRequest."""
    text = request.text(place, "")
    if text and (len(text) != count or set(text) - {"0", "1"}):
        raise BadRequest
    return text


def packet_events(kit: Kit, request: Request) -> Answer:
    """+CGEREP."""
    if request.form is Form.READ:
        return ok(f"+CGEREP: {kit.session.subscriptions.cgerep},0")
    kit.session.subscriptions.cgerep = request.number(0, 0, 1)
    return ok()


def domain_events(kit: Kit, request: Request) -> Answer:
    """%MDMEV: 2 came with a later firmware than 1."""
    if request.form is not Form.SET or not kit.at_least(1, 3, 0):
        raise BadRequest
    kit.session.subscriptions.mdmev = request.number(0, 0, 2 if kit.at_least(2, 0, 0) else 1)
    return ok()


def sleep_notices(kit: Kit, request: Request) -> Answer:
    """%XMODEMSLEEP."""
    kit.session.subscriptions.xmodemsleep = request.number(0, 0, 1)
    return ok()


def update_notices(kit: Kit, request: Request) -> Answer:
    """%XT3412."""
    kit.session.subscriptions.xt3412 = request.number(0, 0, 1)
    return ok()


def connection_statistics(_kit: Kit, request: Request) -> Answer:
    """%XCONNSTAT."""
    if request.form is Form.READ:
        return ok("%XCONNSTAT: 0,0,12,34,708,291")
    request.number(0, 0, 1)
    return ok()


def current_band(kit: Kit, request: Request) -> Answer:
    """%XCBAND: the band in use, 0 while there is none; the test form lists all."""
    if request.form is Form.TEST:
        return ok("%XCBAND: (1,2,3,4,5,8,12,13,18,19,20,25,26,28,66)")
    if request.form is not Form.RUN:
        raise BadRequest
    heard = kit.heard()
    return ok(f"%XCBAND: {heard[0].cell.band if kit.registered and heard else 0}")


def factory_reset(kit: Kit, request: Request) -> Answer:
    """%XFACTORYRESET: settings and, truthfully unclear, credentials: here both go with 0."""
    if kit.session.fun not in _INACTIVE:
        return fail()
    everything = request.number(0, 0, 1) == 0
    kit.saved.system_mode = (1, 0, 1, 0)
    if everything:
        kit.saved.credentials.clear()
    return ok(takes_s=kit.delay(1.0))


def emergency_word(_kit: Kit, request: Request) -> Answer:
    """%XSUDO: there is no key here that would let anybody in."""
    request.number(0, 1, 4096)
    if not request.given(1) or isinstance(request.parameters[1], Bare | int):
        raise BadRequest
    return fail(520)


COMMANDS = {
    "+CPIN": pin,
    "+CIMI": subscriber,
    "%XICCID": card,
    "%XSIM": sim_state,
    "+COPS": operators,
    "+CGDCONT": contexts,
    "+CGPADDR": addresses,
    "+CGACT": activation,
    "%XSYSTEMMODE": system_mode,
    "%XVBAT": battery,
    "%XTEMP": temperature,
    "+CPSMS": power_saving,
    "+CEDRXS": paging_cycle,
    "+CEDRXRDP": paging_cycle_in_use,
    "+CGEREP": packet_events,
    "%MDMEV": domain_events,
    "%XMODEMSLEEP": sleep_notices,
    "%XT3412": update_notices,
    "%XCONNSTAT": connection_statistics,
    "%XCBAND": current_band,
    "%XFACTORYRESET": factory_reset,
    "%XSUDO": emergency_word,
}
