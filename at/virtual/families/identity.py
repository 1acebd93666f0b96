"""AT alone, identity: +CGMI +CGMM +CGMR %SHORTSWVER %HWVERSION +CGSN %DEVICEUUID %XMODEMUUID."""

from __future__ import annotations

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.options import firmware_uuid


def attention(_kit: VirtualKit, _request: CommandRequest) -> Reply:
    """AT alone."""
    return ok()


def manufacturer(_kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGMI."""
    return _only_run(request, "Nordic Semiconductor ASA")


def model(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGMM."""
    return _only_run(request, kit.model.name)


def revision(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGMR."""
    return _only_run(request, kit.firmware)


def short_version(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%SHORTSWVER."""
    return _only_run(request, f"%SHORTSWVER: {kit.firmware.removeprefix('mfw_')}")


def hardware_version(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%HWVERSION."""
    return _only_run(request, f"%HWVERSION: {kit.model.hardware}")


def serial_number(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGSN: 0 the serial number, 1 the IMEI, 2 the IMEISV, 3 the software version number."""
    if request.form is RequestForm.TEST:
        return ok("+CGSN: (0-3)")
    if request.form is RequestForm.READ:
        return fail()
    imei = kit.saved.imei
    kind = request.number(0, 0, 3, default=0) if request.form is RequestForm.SET else 0
    if kind in {1, 2} and not kit.faults.has_imei:
        return fail()
    if kind == 0:
        return ok(imei)
    return ok(f'+CGSN: "{(imei, imei[:14] + "25", "25")[kind - 1]}"')


def modem_uuid(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XMODEMUUID: the build id of the firmware, not of the device."""
    return _only_run(request, f"%XMODEMUUID: {firmware_uuid(kit.firmware)}")


def device_uuid(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%DEVICEUUID: the nRF9160 does not have it."""
    if kit.model.family == "nrf9160":
        return fail(0)
    return _only_run(request, f"%DEVICEUUID: {kit.saved.uuid}")


def _only_run(request: CommandRequest, line: str) -> Reply:
    if request.form is not RequestForm.RUN:
        raise BadRequest
    return ok(line)


COMMANDS = {
    "": attention,
    "+CGMI": manufacturer,
    "+CGMM": model,
    "+CGMR": revision,
    "%SHORTSWVER": short_version,
    "%HWVERSION": hardware_version,
    "+CGSN": serial_number,
    "%XMODEMUUID": modem_uuid,
    "%DEVICEUUID": device_uuid,
}
