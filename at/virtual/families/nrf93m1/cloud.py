"""The nRF93M1's own cloud client: %NRFCLOUDLOCATION %NRFCLOUDMESSAGE %NRFCLOUDSHADOW %NRFCLOUDOBS*.

No cloud is contacted: the answers are those of a cloud that knows the kit's true position. Each
request is a contact of its own, unless the fault "cloud-session-kept" lets it use the last one.
"""

import base64
import binascii
import json
import struct
from collections.abc import Sequence
from functools import partial

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only
from at.virtual.families.nrf93m1.module import OPERATION_NOT_ALLOWED
from at.virtual.kit import Reply, VirtualKit, fail, ok

SINGLE_CELL, MULTI_CELL, WIFI = 1, 2, 4
_NAMES = {SINGLE_CELL: "SCELL", MULTI_CELL: "MCELL", WIFI: "WIFI"}
_UNCERTAINTY_M = {SINGLE_CELL: 1094, MULTI_CELL: 270, WIFI: 25}
_LONGEST_MESSAGE = 511
_STEP_S = 0.25
_FEWEST_POINTS = 2
_SERVER = "192.0.2.84"  # set aside for documentation: RFC 5737


def ask(kit: VirtualKit, *steps: str, result: Sequence[str] = ()) -> Reply:
    """Return the reply of a request to the cloud: its steps as notices, then its result and OK."""
    begin, refusal = contact(kit)
    lines = [*begin, *(() if refusal else steps)]
    if kit.options.instant:
        for line in lines:
            kit.notify(line)
    else:
        for number, line in enumerate(lines):
            kit.schedule_in_session(number * _STEP_S, partial(kit.notify, line))
    takes_s = kit.delay(len(lines) * _STEP_S)
    if refusal:
        return Reply(failed=True, code=OPERATION_NOT_ALLOWED, takes_s=takes_s)
    kit.session.cloud_ready = True
    return ok(*result, takes_s=takes_s)


def contact(kit: VirtualKit) -> tuple[list[str], bool]:
    """Return the steps of a contact, and whether it fails."""
    if not kit.registered:
        return ["%COAP: ERROR,NO_BEARER"], True
    if kit.session.cloud_ready and "cloud-session-kept" in kit.faults:
        return [], False
    lines = ["CONNECTING ...", "RESOLVING coap.nrfcloud.com (IPv4)..."]
    if kit.modem_time() is None:
        lines.append(f"SYNCING_TIME to {_SERVER}")
        kit.session.clock_offset_s = kit.unix_offset_s
        lines.append(f"TIMESYNC_PARSED,{int(kit.now + kit.unix_offset_s)}")
    lines += [f"IPv4: {_SERVER}, PORT: 5684", "DTLS_STATE,4", "SENDING_AUTH"]
    refused = "not-onboarded" in kit.faults
    lines += ["RESPONSE,4.01"] if refused else ["RESPONSE,2.01", "CONNECTED"]
    return [f"%COAP: {line}" for line in lines], refused


def locate(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NRFCLOUDLOCATION: by what is asked for, the best that is heard."""
    method, fetch = request.number(0, 1, 7), request.number(1, 0, 1)
    if not fetch:
        return ask(kit, "%COAP: RESPONSE,2.04", result=["%NRFCLOUDLOCATION: ACK RECEIVED"])
    used = _used(kit, method)
    if used is None:
        return ask(kit, "%COAP: RESPONSE,4.04")
    where = kit.position
    told = (where.lat, where.lon, float(_UNCERTAINTY_M[used]))
    body = b"".join(bytes([key, 0xFB]) + struct.pack(">d", told[key - 1]) for key in (1, 2, 3))
    name = _NAMES[used].encode("ascii")
    body = b"\xbf" + body + bytes([4, 0x60 + len(name)]) + name + b"\xff"
    steps = ("%COAP: RESPONSE,2.05", f"%COAP: DATA,HEX,{body.hex()}")
    place = f"{where.lat:.6f},{where.lon:.6f},{_UNCERTAINTY_M[used]},{used}"
    result = f"%NRFCLOUDLOCATION: {place}"
    if "late-location" not in kit.faults:
        return ask(kit, *steps, result=[result])
    reply = ask(kit, *steps)
    if reply.failed:
        return reply
    kit.schedule_in_session(reply.takes_s, partial(kit.notify, result))
    return ok()


def _used(kit: VirtualKit, method: int) -> int | None:
    """Return what the cloud finds the position by, None where too little is heard."""
    points = kit.world.access_points(kit.position)
    cells = kit.cells_in_range() if "no-cells" not in kit.faults else []
    if method & WIFI and len(points) >= _FEWEST_POINTS:
        return WIFI
    if method & MULTI_CELL and len(cells) > 1:
        return MULTI_CELL
    return SINGLE_CELL if method & SINGLE_CELL and cells else None


def message(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NRFCLOUDMESSAGE: a JSON object or list, not in quotes."""
    text = str(request.parameters[0])
    if len(text) > _LONGEST_MESSAGE or not isinstance(_json(text), dict | list):
        raise BadRequest
    return ask(kit, "%COAP: RESPONSE,2.01", result=["%NRFCLOUDMESSAGE: SENT"])


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest from None


def shadow(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NRFCLOUDSHADOW: writes what is reported; what it reads comes as the body of a step."""
    path, comma, value = str(request.parameters[0]).partition(",")
    if not path:
        raise BadRequest
    if comma:
        kit.saved.settings[f"shadow {path}"] = value
        return ask(kit, "%COAP: RESPONSE,2.04")
    told = json.dumps(kit.saved.settings.get(f"shadow {path}"))
    return ask(kit, "%COAP: RESPONSE,2.05", f"%COAP: DATA,{len(told)},{told}")


def heartbeat(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%NRFCLOUDOBSHEARTBEAT: one more chunk in the queue."""
    kit.session.queued_chunks += 1
    return ok()


def upload(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """%NRFCLOUDOBSUPLOAD: sends what waits."""
    count = kit.session.queued_chunks
    steps = ("%COAP: RESPONSE,2.01", "%COAP: DATA,8,Accepted") * count
    reply = ask(kit, *steps, result=[f"%NRFCLOUDOBSUPLOAD: UPLOADED,{count}"])
    if not reply.failed:
        kit.session.queued_chunks = 0
    return reply


def forward(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NRFCLOUDOBSFORWARD: a chunk of the host's."""
    try:
        chunk = base64.b64decode(request.text(0), validate=True)
    except (binascii.Error, ValueError):
        return fail(OPERATION_NOT_ALLOWED)
    reply = ask(kit, "%COAP: RESPONSE,2.01", "%COAP: DATA,8,Accepted")
    if not reply.failed:
        kit.forwarded.append(chunk)
    return reply


COMMANDS = {
    "%NRFCLOUDLOCATION": only(locate, RequestForm.SET),
    "%NRFCLOUDMESSAGE": only(message, RequestForm.SET),
    "%NRFCLOUDSHADOW": only(shadow, RequestForm.SET),
    "%NRFCLOUDOBSHEARTBEAT": only(heartbeat, RequestForm.RUN),
    "%NRFCLOUDOBSUPLOAD": only(upload, RequestForm.RUN, RequestForm.SET),
    "%NRFCLOUDOBSFORWARD": only(forward, RequestForm.SET),
}
