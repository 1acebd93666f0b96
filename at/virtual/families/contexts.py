"""Packet data: +CGDCONT +CGPADDR +CGACT +CGCONTRDP +CGEREP %XNEWCID %XGETPDNID."""

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, tested
from at.virtual.kit import Reply, VirtualKit, fail, ok

_ADDRESS = "10.160.33.51"
_NAME_SERVERS = "10.160.0.1", "10.160.0.2"
_MTU = 1500
_FAMILIES = {"IP", "IPV6", "IPV4V6", "NON-IP"}


def contexts(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGDCONT."""
    defined = kit.session.contexts
    if request.form is RequestForm.READ:
        shown = defined or {0: ("", "")}
        return ok(*(_context(kit, cid, *shown[cid]) for cid in sorted(shown)))
    cid = request.number(0, 0, 10)
    if len(request.parameters) == 1:
        defined.pop(cid, None)
        kit.session.allocated.discard(cid)
        return ok()
    family = request.text(1)
    if family.upper() not in _FAMILIES:
        raise BadRequest
    defined[cid] = (family, request.text(2, default=""))
    return ok()


def _context(kit: VirtualKit, cid: int, family: str, name: str) -> str:
    address = _address(kit) if cid == 0 else ""
    return f'+CGDCONT: {cid},"{family}","{name}","{address}",0,0'


def login(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGAUTH: 0 none, 1 PAP, 2 CHAP; the manual has the set form alone."""
    request.number(0, 0, 10)
    how = request.number(1, 0, 2, default=0)
    user, password = request.text(2, default=""), request.text(3, default="")
    if max(len(user), len(password)) > 64 or (how and not user) or len(request.parameters) > 4:
        raise BadRequest
    return ok()


def addresses(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGPADDR."""
    if request.form is RequestForm.SET:
        request.number(0, 0, 10)
    return ok(f'+CGPADDR: 0,"{_address(kit)}"')


def _address(kit: VirtualKit) -> str:
    return _ADDRESS if kit.registered and "no-address" not in kit.faults else ""


def activation(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGACT: that of the attach, context 0, is neither activated nor deactivated."""
    if request.form is RequestForm.READ:
        return ok(f"+CGACT: 0,{int(kit.registered)}")
    request.number(0, 0, 1)
    cid = request.number(1, 0, 10)
    return ok() if cid and cid in kit.session.contexts else fail()


def dynamic_parameters(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGCONTRDP: of an active context; unknown fields are empty."""
    if request.form is RequestForm.SET and request.number(0, 0, 10):
        return fail()  # only context 0 can be active
    if not kit.registered:
        return fail()
    first, second = _NAME_SERVERS
    name = kit.session.contexts[0][1]
    return ok(f'+CGCONTRDP: 0,,"{name}","","","{first}","{second}",,,,,{_MTU}')


def new_context(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%XNEWCID?: allocates an identifier; +CGDCONT with it alone gives it back."""
    taken = {0, *kit.session.contexts, *kit.session.allocated}
    free = next((cid for cid in range(1, 11) if cid not in taken), None)
    if free is None:
        return fail()
    kit.session.allocated.add(free)
    return ok(f"%XNEWCID: {free}")


def connection_id(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XGETPDNID: of an active context, which only context 0 can be."""
    if len(request.parameters) != 1:
        raise BadRequest
    if request.number(0, 0, 11) or not kit.registered:
        return fail()
    return ok("%XGETPDNID: 0")


def packet_events(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGEREP."""
    if request.form is RequestForm.READ:
        return ok(f"+CGEREP: {kit.session.subscriptions.cgerep},0")
    kit.session.subscriptions.cgerep = request.number(0, 0, 1)
    return ok()


COMMANDS = {
    "+CGAUTH": login,
    "+CGDCONT": tested(contexts, '(0-10),"IP",,,(0),(0)'),
    "+CGPADDR": only(addresses, RequestForm.SET, RequestForm.RUN),
    "+CGACT": tested(activation, "(0,1)"),
    "+CGCONTRDP": only(dynamic_parameters, RequestForm.SET, RequestForm.RUN),
    "+CGEREP": tested(packet_events, "(0,1),(0)"),
    "%XNEWCID": only(new_context, RequestForm.READ),
    "%XGETPDNID": connection_id,
}
