"""The Serial Modem's own commands: #XSMVER #XUUID #XRESET #XMODEMRESET #XLOG #XTRACE #XBOOTINFO.

And +IPR, which is the Serial Modem's, too: the modem has no serial port of its own.
"""

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, shows, tested
from at.virtual.families.serial_modem import cloud
from at.virtual.kit import Reply, VirtualKit, fail, ok

_SDK = {1: "3.1.1", 2: "3.4.0"}
"""The SDK of each generation."""
_RESET_S = 0.1
_RATES = (115200, 230400, 460800, 921600, 1000000)
_BOOTLOADER = (1, 0)
"""The version of its boot loader, and the slot that it runs from."""


def _version(kit: VirtualKit) -> str:
    return f'#XSMVER: "v{kit.saved.app_version}","{_SDK[kit.generation]}"'


def reset(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """#XRESET: the kit restarts after the OK."""
    kit.schedule_restart(_RESET_S)
    return ok()


def modem_reset(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """#XMODEMRESET: the modem restarts, the application does not."""
    cloud.lose(kit)
    kit.restart_modem()
    return ok("#XMODEMRESET: 0", takes_s=kit.delay(0.8))


def logs(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XLOG: logs on the second UART, where the trace is not."""
    modes = kit.generation  # 2 is new in generation 2
    if request.form is RequestForm.TEST:
        return ok(f"#XLOG: ({','.join(map(str, range(modes + 1)))})")
    if request.form is RequestForm.READ:
        return ok(f"#XLOG: {kit.session.log}")
    mode = request.number(0, 0, modes)
    if mode and kit.session.trace:
        return fail()
    kit.session.log = mode
    return ok()


def trace(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XTRACE: the modem's trace on the second UART, where the log is not."""
    if request.form is RequestForm.READ:
        return ok(f"#XTRACE: {int(kit.session.trace)}")
    on = request.number(0, 0, 1) == 1
    if on and kit.session.log:
        return fail()
    kit.session.trace = on
    return ok()


def bootloader(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XBOOTINFO: 0 its version, 1 its slot."""
    return ok(f"#XBOOTINFO: {_BOOTLOADER[request.number(0, 0, 1)]}")


def baud_rate(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+IPR: the rate is kept until the next restart; a terminal and TCP have none."""
    if kit.options.dialect != "serial-modem":
        raise BadRequest
    if request.form is RequestForm.TEST:
        return ok(f"+IPR: (),({','.join(map(str, _RATES))})")
    if request.form is RequestForm.READ:
        return ok(f"+IPR: {kit.session.settings.get('+IPR', _RATES[0])}")
    rate = request.number(0, min(_RATES), max(_RATES))
    if rate not in _RATES:
        raise BadRequest
    kit.session.settings["+IPR"] = str(rate)
    return ok()


COMMANDS = {
    "#XSMVER": shows(_version),
    "#XUUID": shows(lambda kit: f"#XUUID: {kit.saved.uuid}"),
    "#XRESET": only(reset, RequestForm.RUN),
    "#XMODEMRESET": only(modem_reset, RequestForm.RUN),
    "#XLOG": only(logs, RequestForm.SET, RequestForm.READ, RequestForm.TEST),
    "#XTRACE": tested(only(trace, RequestForm.SET, RequestForm.READ), "(0,1)"),
    "#XBOOTINFO": tested(only(bootloader, RequestForm.SET), "(0,1)"),
    "+IPR": only(baud_rate, RequestForm.SET, RequestForm.READ, RequestForm.TEST),
}
SINCE_2 = {"#XTRACE", "#XBOOTINFO"}
