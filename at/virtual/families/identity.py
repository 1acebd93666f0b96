"""AT alone, identity: +CGMI +CGMM +CGMR %SHORTSWVER %HWVERSION +CGSN %DEVICEUUID %XMODEMUUID."""

from at.virtual.command_line import CommandRequest, RequestForm, shows, tested
from at.virtual.kit import Reply, VirtualKit, fail, ok
from at.virtual.options import firmware_uuid


def attention(_kit: VirtualKit, _request: CommandRequest) -> Reply:
    """AT alone."""
    return ok()


def serial_number(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CGSN: 0 the serial number, 1 the IMEI, 2 the IMEISV, 3 the software version number."""
    if request.form is RequestForm.READ:
        return fail()
    imei = kit.saved.imei
    kind = request.number(0, 0, 3, default=0) if request.form is RequestForm.SET else 0
    if kind in {1, 2} and "no-imei" in kit.faults:
        return fail()
    if kind == 0:
        return ok(imei)
    return ok(f'+CGSN: "{(imei, imei[:14] + "25", "25")[kind - 1]}"')


def device_uuid(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%DEVICEUUID: the nRF9160 does not have it."""
    if kit.model.family == "nrf9160":
        return fail(0)
    return shows(lambda kit: f"%DEVICEUUID: {kit.saved.uuid}")(kit, request)


COMMANDS = {
    "": attention,
    "+CGMI": shows(lambda _: "Nordic Semiconductor ASA"),
    "+CGMM": shows(lambda kit: kit.model.name),
    "+CGMR": shows(lambda kit: kit.firmware),
    "%SHORTSWVER": shows(lambda kit: f"%SHORTSWVER: {kit.firmware.removeprefix('mfw_')}"),
    "%HWVERSION": shows(lambda kit: f"%HWVERSION: {kit.model.hardware}"),
    "+CGSN": tested(serial_number, "(0-3)"),
    # The build id of the firmware, not of the device.
    "%XMODEMUUID": shows(lambda kit: f"%XMODEMUUID: {firmware_uuid(kit.firmware)}"),
    "%DEVICEUUID": device_uuid,
}
