"""The modem's own state: %XVBAT %XTEMP %MDMEV."""

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, shows
from at.virtual.kit import Reply, VirtualKit, ok


def temperature(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XTEMP, in degrees Celsius."""
    if request.form is RequestForm.READ:
        return ok(f"%XTEMP: {kit.faults.temperature_c(24)}")
    request.number(0, 0, 1)
    return ok()


def domain_events(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%MDMEV: mode 2 needs a later firmware than mode 1."""
    if not kit.at_least(1, 3, 0):
        raise BadRequest
    kit.session.subscriptions.mdmev = request.number(0, 0, 2 if kit.at_least(2, 0, 0) else 1)
    return ok()


COMMANDS = {
    "%XVBAT": shows(lambda kit: f"%XVBAT: {kit.faults.supply_mv(5054)}"),  # millivolts
    "%XTEMP": temperature,
    "%MDMEV": domain_events,
}
