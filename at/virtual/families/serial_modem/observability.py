"""Observations, and updates by the cloud, of Serial Modem 2.0: #XNRFCLOUDOBS* #XNRFCLOUDFOTA.

No cloud is contacted: what is uploaded or forwarded is accepted, and the fault "release-offered"
is the update that there is.
"""

import base64
import binascii
from functools import partial

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, tested
from at.virtual.families.settings import Setting, handler_of
from at.virtual.kit import Reply, VirtualKit, fail, ok

_AUTO, _COREDUMP = "#XNRFCLOUDOBSAUTO", "#XNRFCLOUDOBSCOREDUMP"
_LONGEST_KEY = 32
_HEARTBEAT_BYTES = 108
_UPLOADS_S, _FORWARDS_S, _CHECKS_S = 1.5, 0.8, 1.2
_CANCEL, _ONLY_CHECK, _OF_MODEM = 0, {4, 6}, {2, 6}
_FOTA = "#XNRFCLOUDFOTA"
_PERCENTS, _STEP_S = (0, 25, 50, 75, 100), 0.5


def automatic_upload(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XNRFCLOUDOBSAUTO: what is left out stays as it is stored, and all of it over restarts."""
    stored = kit.saved.settings.get(_AUTO, '0,3600,""')
    if request.form is RequestForm.READ:
        return ok(f"{_AUTO}: {stored}")
    enabled = request.number(0, 0, 1)
    _, interval, key = stored.split(",")
    if request.given(1):
        interval = str(request.number(1, 60, 86400))
    if request.given(2):
        key = f'"{_key(request, 2)}"'
    kit.saved.settings[_AUTO] = f"{enabled},{interval},{key}"
    return ok()


def heartbeat(kit: VirtualKit, _request: CommandRequest) -> Reply:
    """#XNRFCLOUDOBSHEARTBEAT: taken and stored, without a connection too."""
    kit.session.stored_bytes += _HEARTBEAT_BYTES
    return ok()


def upload(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XNRFCLOUDOBSUPLOAD: what is stored, 0 bytes where nothing is."""
    session = kit.session
    if request.form is RequestForm.SET:
        _key(request, 0)
    if not session.cloud_ready:
        return fail()

    def uploaded() -> None:
        if session.cloud_ready:
            kit.notify(f"#XNRFCLOUDOBSUPLOAD: 0,{session.stored_bytes}")
            session.stored_bytes = 0
        else:
            kit.notify("#XNRFCLOUDOBSUPLOAD: -1")

    kit.schedule_in_session(kit.delay(_UPLOADS_S), uploaded)
    return ok()


def forward(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XNRFCLOUDOBSFORWARD: one chunk at a time; it is not stored."""
    session = kit.session
    try:
        chunk = base64.b64decode(request.text(0), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest from error
    if request.given(1):
        _key(request, 1)
    if not chunk or not session.cloud_ready or session.forwarding:
        return fail()
    session.forwarding = True

    def forwarded() -> None:
        session.forwarding = False
        if session.cloud_ready:
            kit.forwarded.append(chunk)
        kit.notify(f"#XNRFCLOUDOBSFORWARD: {0 if session.cloud_ready else -1}")

    kit.schedule_in_session(kit.delay(_FORWARDS_S), forwarded)
    return ok()


def update(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XNRFCLOUDFOTA: the update that "release-offered" names; one session for it and #XFOTA."""
    operation = request.number(0, _CANCEL, max(_ONLY_CHECK))
    if operation not in {_CANCEL, 1, 2, *_ONLY_CHECK}:
        raise BadRequest
    if request.given(1):
        _key(request, 1)
    session = kit.session
    if operation == _CANCEL and session.downloading:
        session.fetching = session.downloading = False
        kit.notify(f"{_FOTA}: 1,2,0")
        return ok()
    if operation == _CANCEL or not session.cloud_ready or session.fetching:
        return fail()
    session.fetching = True
    kit.schedule_in_session(kit.delay(_CHECKS_S), lambda: _checked(kit, operation))
    return ok()


def _checked(kit: VirtualKit, operation: int) -> None:
    """Tell what the check has found; the operations that download go on with it."""
    offered = kit.faults.text("release-offered")
    of_modem, session = operation in _OF_MODEM, kit.session
    running = kit.firmware if of_modem else kit.saved.app_version
    found = bool(offered) and offered.startswith("mfw_") == of_modem and offered != running
    if session.cloud_ready and found and operation not in _ONLY_CHECK:
        session.downloading = True
        for number, percent in enumerate(_PERCENTS):
            after_s = kit.delay(number * _STEP_S)
            kit.schedule_in_session(after_s, partial(_progress, kit, offered, percent))
        return
    session.fetching = False
    kit.notify(f"{_FOTA}: {int(found) if session.cloud_ready else '-1,-128'}")


def _progress(kit: VirtualKit, version: str, percent: int) -> None:
    session = kit.session
    if not session.downloading:  # it was cancelled
        return
    kit.notify(f"{_FOTA}: 1,0,{percent}")
    if percent < _PERCENTS[-1]:
        return
    session.fetching = session.downloading = False
    if "flash-failed" in kit.faults:
        kit.notify(f"{_FOTA}: 1,1,2")
        return
    if version.startswith("mfw_"):
        kit.saved.pending_modem = version
    else:
        kit.saved.pending_image = version
    kit.saved.fota_report = "5,0"
    kit.notify(f"{_FOTA}: 4,0")


def _key(request: CommandRequest, index: int) -> str:
    """Return a project key of the parameters. Raises BadRequest."""
    key = request.text(index)
    if len(key) > _LONGEST_KEY:
        raise BadRequest
    return key


COMMANDS = {
    _AUTO: tested(
        only(automatic_upload, RequestForm.SET, RequestForm.READ), "(0,1),(60-86400),<project_key>"
    ),
    # Whether an upload has the core dump; on at first.
    _COREDUMP: handler_of(_COREDUMP, Setting(((0, 1),), default="1", test="(0,1)")),
    "#XNRFCLOUDOBSHEARTBEAT": only(heartbeat, RequestForm.RUN),
    "#XNRFCLOUDOBSUPLOAD": tested(only(upload, RequestForm.RUN, RequestForm.SET), "<project_key>"),
    "#XNRFCLOUDOBSFORWARD": tested(only(forward, RequestForm.SET), "<base64_chunk>,<project_key>"),
    "#XNRFCLOUDFOTA": tested(only(update, RequestForm.SET), "(0,1,2,4,6)[,<project_key>]"),
}
SINCE_2 = set(COMMANDS)
