"""The Serial Modem's own commands: #XSMVER #XSLMVER #XUUID #XRESET #XMODEMRESET #XLOG."""

from at.virtual.command_line import CommandRequest, RequestForm, only
from at.virtual.kit import Reply, VirtualKit, ok

SDK = "3.1.1"
_RESET_S = 0.1


def version(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """#XSMVER: of the application and of the SDK it was built with."""
    return ok(f'#XSMVER: "v{kit.saved.app_version}","{SDK}"')


def device_uuid(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """#XUUID."""
    return ok(f"#XUUID: {kit.saved.uuid}")


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


COMMANDS = {
    "#XSMVER": only(version, RequestForm.RUN),
    "#XSLMVER": only(version, RequestForm.RUN),
    "#XUUID": only(device_uuid, RequestForm.RUN),
    "#XRESET": only(reset, RequestForm.RUN),
    "#XMODEMRESET": only(modem_reset, RequestForm.RUN),
    "#XLOG": logs,
}
