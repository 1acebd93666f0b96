"""The Serial Modem's own commands: #XSMVER #XSLMVER #XUUID #XRESET #XMODEMRESET #XLOG."""

from __future__ import annotations

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm
from at.virtual.kit import Reply, VirtualKit, ok

SDK = "3.1.1"
_RESET_S = 0.1


def version(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XSMVER: of the application and of the SDK it was built with."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    return ok(f'#XSMVER: "v{kit.saved.app_version}","{SDK}"')


def device_uuid(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XUUID."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    return ok(f"#XUUID: {kit.saved.uuid}")


def reset(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XRESET: the kit restarts after the OK."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    kit.schedule_restart(_RESET_S)
    return ok()


def modem_reset(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XMODEMRESET: the modem restarts, the application does not."""
    if request.form is not RequestForm.RUN:
        raise BadRequest
    kit.restart_modem()
    return ok("#XMODEMRESET: 0", takes_s=kit.delay(0.8))


def logs(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XLOG: logs on the second UART."""
    kit.session.log = request.number(0, 0, 1) == 1
    return ok()


COMMANDS = {
    "#XSMVER": version,
    "#XSLMVER": version,
    "#XUUID": device_uuid,
    "#XRESET": reset,
    "#XMODEMRESET": modem_reset,
    "#XLOG": logs,
}
