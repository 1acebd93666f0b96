"""The nRF93M1 module: its identity and tokens, its clock, what it hears, its own settings.

What it shares with an nRF91 is in the other families; `COMMANDS` here take precedence.
"""

import base64
from datetime import UTC, datetime

from at.virtual import signing
from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, tested
from at.virtual.families import clock, functional_mode, sim
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.radio_world import MeasuredCell

SHARED = (
    *("", "+CGMI", "+CGMM", "+CGMR", "+CGSN", "+CEREG", "+CEER", "+COPS", "+CSCON", "+CGATT"),
    *("+CGDCONT", "+CGPADDR", "+CGACT", "+CGCONTRDP", "+CGEREP", "+CESQ", "+CPIN", "+CPINR"),
    *("+CIMI", "+CRSM", "+CPSMS", "+CEDRXS", "+CEDRXRDP"),
)
"""Commands of the nRF91 families that the module answers alike."""
OPERATION_NOT_ALLOWED = 3
ERROR_TEXTS = {
    3: "operation not allowed",
    10: "SIM not inserted",
    11: "SIM PIN required",
    12: "SIM PUK required",
    13: "SIM failure",
    50: "incorrect parameters",
}
"""Texts of +CMEE=2 by number: TS 27.007, clause 9.2. The module's own are not known."""
_MODES = (0, 1, 4)
_TOKEN_S = 3600
_SCAN_MS = (5000, 255_000)
_CHANNELS_2_4_GHZ = range(1, 15)
_MOST_NEIGHBORS = 8
_START_S = 0.5


def device_uuid(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%DEVICEUUID: at its first use a line before it says that it is made."""
    told = f"%DEVICEUUID: {kit.saved.uuid}"
    if kit.saved.settings.setdefault("%DEVICEUUID", "") == "made":
        return ok(told)
    kit.saved.settings["%DEVICEUUID"] = "made"
    return ok("%DEVICEUUID: creating device uuid...", told)


def access_key(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%CLOUDACCESSKEY: the public key in DER, in base64."""
    der = signing.public_der(signing.identity_key(kit))
    return ok(f"%CLOUDACCESSKEY: {base64.b64encode(der).decode('ascii')}")


def registration_token(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%REGJWT: signed for a team, in quotes or not; needs a valid time."""
    if len(request.parameters) != 1 or not isinstance(request.parameters[0], str):
        raise BadRequest
    if kit.modem_time() is None:
        return fail(OPERATION_NOT_ALLOWED)
    claims = {"sub": kit.saved.uuid, "id": str(request.parameters[0])}
    token = signing.plain_token(signing.identity_key(kit), claims)
    return ok(f"%REGJWT: {token}", takes_s=kit.delay(0.3))


def login_token(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%JWT: for the cloud's login, about an hour long."""
    now = kit.modem_time()
    if now is None:
        return fail(OPERATION_NOT_ALLOWED)
    claims = {"sub": kit.saved.uuid, "iat": int(now), "exp": int(now) + _TOKEN_S}
    token = signing.plain_token(signing.identity_key(kit), claims)
    return ok(f"%JWT: {token}", takes_s=kit.delay(0.3))


def module_clock(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CCLK: the year 00 until a time is set; a year of four digits is taken, too."""
    if request.form is RequestForm.READ:
        seconds = kit.modem_time()
        if seconds is None:
            since = datetime.fromtimestamp(kit.uptime_ms // 1000, UTC)
            return ok(f'+CCLK: "00/01/01,{since:%H:%M:%S}+00"')
        return ok(f'+CCLK: "{datetime.fromtimestamp(seconds, UTC):%y/%m/%d,%H:%M:%S}+00"')
    if request.form is RequestForm.SET and len(request.parameters) == 1:
        text = request.text(0)
        short = text[2:] if text[4:5] == "/" else text
        return clock.clock(kit, CommandRequest(request.name, request.form, (short,)))
    raise BadRequest


def mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CFUN: 0, 1 and 4 alone."""
    if request.form is RequestForm.SET and request.number(0, 0, max(_MODES)) not in _MODES:
        raise BadRequest
    return functional_mode.functional_mode(kit, request)


def cells(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%BCINFO: the serving cell and its neighbours; nothing where it is on none."""
    if request.form is RequestForm.SET and request.number(0, 0, 1) == 0:
        return ok()  # periodic information, which this kit is asked for by nobody yet
    measured = kit.cells_in_range() if kit.registered and "no-cells" not in kit.faults else []
    lines = [f"%BCINFONC: {_level(one)}" for one in measured[1 : _MOST_NEIGHBORS + 1]]
    if measured:
        cell = measured[0].cell
        identity = f'"{cell.plmn[:3]}","{cell.plmn[3:]}","{cell.eci:08X}","{cell.tac:04X}"'
        lines.insert(0, f"%BCINFOSC: {_level(measured[0])},{identity}")
    return ok(*lines, takes_s=kit.delay(0.5))


def _level(measured: MeasuredCell) -> str:
    quality = round(measured.rsrq_db)
    return f"{measured.cell.earfcn},{measured.cell.pci},{measured.rsrp_dbm},{quality}"


def wifi(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%WIFISCAN: passive, of 2.4 GHz; the strongest first."""
    given = request.form is RequestForm.SET
    if given:
        request.number(0, *_SCAN_MS, default=12000)
        request.number(1, 1, 3, default=1)
    most = request.number(2, 4, 40, default=5) if given else 5
    seconds = request.number(3, 1, 255, default=5) if given else 5
    lines = []
    for measured in kit.world.access_points(kit.position):
        point = measured.access_point
        if point.channel in _CHANNELS_2_4_GHZ:
            fields = f'-,"{point.ssid}",{measured.rssi_dbm},"{point.bssid.upper()}",{point.channel}'
            lines.append(f"%WIFISCAN:({fields})")
    return ok(*lines[:most], takes_s=kit.delay(min(seconds, 5)))


def power_down(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%POWD=1: OK, then POWERED DOWN, then nothing until the power key starts it again."""
    request.number(0, 1, 1)
    kit.power_off()
    return ok()


def factory_reset(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%FACTORYRESET: restarts; the identity stays."""
    kit.saved.settings = {"%DEVICEUUID": kit.saved.settings.get("%DEVICEUUID", "")}
    kit.schedule_restart(_START_S)
    return ok()


def accepted(_kit: VirtualKit, _request: CommandRequest) -> Reply:
    """Answer OK: settings of the line, and the command with which a test clears a core dump."""
    return ok()


COMMANDS = {
    "%DEVICEUUID": only(device_uuid, RequestForm.RUN),
    "%CLOUDACCESSKEY": only(access_key, RequestForm.RUN),
    "%REGJWT": only(registration_token, RequestForm.SET),
    "%JWT": only(login_token, RequestForm.RUN),
    "%ICCID": only(sim.card_number, RequestForm.RUN),
    "%BAND": tested(only(accepted), "(1,3,7,8,20,28)"),
    "+CCLK": module_clock,
    "+CFUN": tested(mode, "(0,1,4)"),
    "+CMEE": tested(functional_mode.error_format, "(0-2)"),
    "%BCINFO": only(cells, RequestForm.RUN, RequestForm.SET),
    "%WIFISCAN": only(wifi, RequestForm.RUN, RequestForm.SET),
    "+IPR": only(accepted, RequestForm.SET),
    "+IFC": only(accepted, RequestForm.SET),
    "+NFWUPD": only(accepted, RequestForm.SET),
    "%POWD": only(power_down, RequestForm.SET),
    "%FACTORYRESET": only(factory_reset, RequestForm.RUN),
}
