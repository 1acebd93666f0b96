"""Operators and connection: +COPS %COPS +CSCON +CEMODE +CGATT."""

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, tested
from at.virtual.kit import Reply, VirtualKit, fail, ok

_RADIO_CONNECTION_ACTIVE = 516


def operators(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+COPS: the operator, the list of a scan, or a choice."""
    if request.form is RequestForm.READ:
        if kit.session.plmn_lock:
            return ok(f'+COPS: 1,2,"{kit.session.plmn_lock}"')
        if not kit.registered:
            return ok("+COPS: 0")
        plmn = kit.cells_in_range()[0].cell.plmn
        return ok(f'+COPS: 0,2,"{plmn}",{kit.access_technology}')
    if request.form is RequestForm.TEST:
        if kit.session.connected:
            return fail(_RADIO_CONNECTION_ACTIVE)
        return scan(kit, request)
    mode = request.number(0, 0, 3)
    if mode == 1:
        request.number(1, 2, 2)
        if not request.text(2).isdecimal():
            raise BadRequest
    elif mode == 3:
        request.number(1, 0, 2)
    elif mode == 0:
        kit.session.plmn_lock = ""
    return ok()


def scan(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%COPS: the list of a scan, also while connected."""
    networks = {measured.cell.plmn: None for measured in kit.cells_in_range()} if kit.active else {}
    stat = 3 if kit.faults.reject is not None else 2 if kit.registered else 1
    entries = ",".join(f'({stat},"","","{plmn}",{kit.access_technology})' for plmn in networks)
    return ok(f"{request.name}: {entries}", takes_s=kit.delay(8.0))


def operation_mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CEMODE: 0 PS mode 2, 2 CS/PS mode 2; a modem without voice has no others."""
    if request.form is RequestForm.READ:
        return ok(f"+CEMODE: {kit.saved.operation_mode}")
    mode = request.number(0, 0, 2)
    if mode == 1:
        raise BadRequest
    kit.saved.operation_mode = mode
    return ok()


def connection(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CSCON."""
    subscriptions = kit.session.subscriptions
    if request.form is RequestForm.READ:
        return ok(f"+CSCON: {subscriptions.cscon},{_connection(kit)}")
    subscriptions.cscon = request.number(0, 0, 3)
    return ok()


def notify_connection(kit: VirtualKit) -> None:
    """Print +CSCON where subscribed."""
    if kit.session.subscriptions.cscon:
        kit.notify("+CSCON: " + _connection(kit))


def _connection(kit: VirtualKit) -> str:
    level = kit.session.subscriptions.cscon
    if not kit.session.connected:
        return "0"
    return ("1", "1", "1,7", "1,7,4")[level]


def attachment(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGATT: attaching and detaching by hand is refused."""
    if request.form is RequestForm.READ:
        return ok(f"+CGATT: {int(kit.registered)}")
    return fail()


COMMANDS = {
    "+COPS": operators,
    "%COPS": only(scan, RequestForm.TEST),
    "+CSCON": tested(connection, "(0,1,2,3)"),
    "+CEMODE": tested(operation_mode, "(0,2)"),
    "+CGATT": tested(attachment, "(0,1)"),
}
