"""Updates of the nRF93M1 by its own client: %NRFCLOUDFOTA, and what its loader prints.

The fault "release-offered" is the release that the cloud has for it; without it there is none.
"""

import json
from functools import partial

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only
from at.virtual.families.nrf93m1 import cloud
from at.virtual.kit import Reply, VirtualKit, ok

HOST_CHECK, HOST_CHUNK, CHECK, UPDATE, FORGET = range(5)
_IMAGE_BYTES = 215_222
_ZONE = "%FOTA: ZONE,1,462848"
_BLOCKS_BYTES = 16 * 1024
_STEP_S = 0.1
_LOADER = (0, 7, 14, 22, 29, 37, 44, 51, 59, 66, 74, 81, 85, 92, 100)
_URL = "https://files.example/mfw?token=made-up"


def update(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%NRFCLOUDFOTA: OK first, then the steps as notices."""
    mode = request.number(0, HOST_CHECK, FORGET)
    if mode == FORGET:
        return ok()
    if mode == HOST_CHUNK:
        raise BadRequest  # there is no image for a host here
    key = request.parameters[1] if len(request.parameters) > 1 else None
    if not isinstance(key, str) or not key or kit.session.fetching:
        raise BadRequest
    kit.session.fetching = True
    target = kit.faults.text("release-offered") if mode != HOST_CHECK else ""
    steps = ["%FOTA: CHECKING"]
    contact, refused = cloud.contact(kit)
    steps += contact
    found = not refused and target not in {"", kit.firmware}
    if found:
        body = json.dumps({"data": {"url": _URL}})
        steps += ["%COAP: RESPONSE,2.05", f"%COAP: DATA,{len(body)},{body}"]
    elif not refused:
        steps.append("%COAP: RESPONSE,4.04")
    if not found:
        steps.append("%FOTA: NO_UPDATE")
    elif mode == CHECK:
        steps.append("%FOTA: UPDATE_AVAILABLE")
    else:
        steps += _download()
    _print(kit, steps)
    after_s = kit.delay(len(steps) * _STEP_S)
    installs = found and mode == UPDATE
    kit.schedule_in_session(after_s, lambda: _ended(kit, target if installs else None))
    return ok()


def _download() -> list[str]:
    sizes = [*range(_BLOCKS_BYTES, _IMAGE_BYTES, _BLOCKS_BYTES), _IMAGE_BYTES]
    return [
        *(_ZONE, "%FOTA: ERASING", "%FOTA: DOWNLOADING"),
        *(f"%FOTA: DOWNLOADING,{size}" for size in sizes),
        f"%FOTA: DOWNLOAD_DONE,{_IMAGE_BYTES}",
        *("%FOTA: VERIFYING", "%FOTA: VERIFIED", "%FOTA: UPGRADING"),
    ]


def _print(kit: VirtualKit, steps: list[str]) -> None:
    for number, line in enumerate(steps):
        kit.schedule_in_session(kit.delay(number * _STEP_S), partial(kit.notify, line))


def _ended(kit: VirtualKit, target: str | None) -> None:
    kit.session.fetching = False
    if target is None:
        return
    failed = "flash-failed" in kit.faults
    if not failed:
        kit.saved.pending_modem = target
    kit.loader_lines = [
        '%FOTA: "APPLY"',
        *(f'%FOTA: "UPDATING",{percent}' for percent in _LOADER),
        f'%FOTA: "DONE",{int(failed)}',
    ]
    kit.restart_requested = True


COMMANDS = {"%NRFCLOUDFOTA": only(update, RequestForm.SET)}
