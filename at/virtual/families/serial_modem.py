"""The Serial Modem's own commands: #XSMVER #XSLMVER #XUUID #XRESET #XMODEMRESET #XLOG."""

from at.virtual.command_line import CommandRequest, RequestForm, only, shows
from at.virtual.kit import Reply, VirtualKit, ok

SDK = "3.1.1"
_RESET_S = 0.1


def reset(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """#XRESET: the kit restarts after the OK."""
    kit.schedule_restart(_RESET_S)
    return ok()


def modem_reset(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """#XMODEMRESET: the modem restarts, the application does not."""
    kit.restart_modem()
    return ok("#XMODEMRESET: 0", takes_s=kit.delay(0.8))


def logs(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XLOG: logs on the second UART."""
    kit.session.log = request.number(0, 0, 1) == 1
    return ok()


# Of the application, and of the SDK it was built with.
_VERSION = shows(lambda kit: f'#XSMVER: "v{kit.saved.app_version}","{SDK}"')
COMMANDS = {
    "#XSMVER": _VERSION,
    "#XSLMVER": _VERSION,
    "#XUUID": shows(lambda kit: f"#XUUID: {kit.saved.uuid}"),
    "#XRESET": only(reset, RequestForm.RUN),
    "#XMODEMRESET": only(modem_reset, RequestForm.RUN),
    "#XLOG": logs,
}
