"""The Serial Modem's way to its cloud: #XNRFCLOUD #XNRFCLOUDPOS.

No cloud is contacted: the answers are those of a cloud that knows the kit's true position.
"""

import re

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, only, tested
from at.virtual.families import cells
from at.virtual.families.credentials import SlotType, slot
from at.virtual.kit import DataMode, Reply, VirtualKit, fail, ok

SEC_TAG = 16_842_753
DISCONNECT, CONNECT, SEND = range(3)
_SINGLE_CELL, _MULTI_CELL, _WIFI = range(3)
_UNCERTAINTY_M = {_SINGLE_CELL: 1094, _MULTI_CELL: 270, _WIFI: 25}
_CONNECTS_S, _LOCATES_S, _MEASURES_S = 3.0, 1.5, 4.0
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII | re.IGNORECASE)


def connection(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XNRFCLOUD: a kit that is registered and provisioned can connect."""
    session = kit.session
    if request.form is RequestForm.READ:
        state = f"{int(session.cloud_ready)},{session.cloud_sends_location}"
        device = kit.saved.uuid if session.cloud_joined else ""
        return ok(f'#XNRFCLOUD: {state},{SEC_TAG},"{device}"')
    operation = request.number(0, DISCONNECT, SEND)
    if operation == CONNECT:
        provisioned = slot(SEC_TAG, SlotType.CLIENT_PRIVATE_KEY) in kit.saved.credentials
        sends = request.number(1, 0, 1, default=0)
        if session.cloud_ready or not (kit.registered and provisioned):
            return fail()
        kit.schedule(kit.delay(_CONNECTS_S), lambda: _connected(kit, sends))
        return ok()
    if not session.cloud_ready:
        return fail()
    if operation == SEND:
        return Reply(data=DataMode(None, lambda _: kit.notify("#XDATAMODE: 0")))
    session.cloud_ready = False
    kit.schedule(0.0, lambda: _notify(kit))
    return ok()


def _connected(kit: VirtualKit, sends_location: int) -> None:
    if kit.registered:
        kit.session.cloud_ready = kit.session.cloud_joined = True
        kit.session.cloud_sends_location = sends_location
        _notify(kit)


def _notify(kit: VirtualKit) -> None:
    session = kit.session
    kit.notify(f"#XNRFCLOUD: {int(session.cloud_ready)},{session.cloud_sends_location}")


def lose(kit: VirtualKit) -> None:
    """End the connection with the modem's; generation 2 says so."""
    if kit.session.cloud_ready:
        kit.session.cloud_ready = False
        if kit.generation > 1:
            _notify(kit)


def position(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XNRFCLOUDPOS: by cells that the modem measures, and access points that the host scanned.

    Generation 1 takes 0 for no cell, 1 for one, 2 for those that the host has measured; it prints
    no status before a place.
    """
    count = request.number(0, 0, 15 if kit.generation > 1 else 2)
    by_wifi = request.number(1, 0, 1) == 1
    points = _access_points(request) if by_wifi else []
    if not (count or by_wifi) or (by_wifi and len(points) < 2):
        raise BadRequest
    session = kit.session
    if not session.cloud_ready or session.locating or session.measurement is not None:
        return fail()
    session.locating = True
    takes_s = _LOCATES_S
    if count > 1 and kit.generation > 1:
        takes_s += _MEASURES_S
        kit.schedule(kit.delay(_MEASURES_S), lambda: _measured(kit, count))
    kit.schedule(kit.delay(takes_s), lambda: _located(kit, count, points))
    return ok()


def _access_points(request: CommandRequest) -> list[str]:
    """Return the addresses of access points; a level in dBm may follow each of them."""
    points: list[str] = []
    for index, parameter in enumerate(request.parameters[2:], 2):
        if isinstance(parameter, int) and isinstance(request.parameters[index - 1], str):
            request.number(index, -128, 0)
            continue
        address = request.text(index)
        if _MAC.fullmatch(address) is None:
            raise BadRequest
        points.append(address.lower())
    return points


def _measured(kit: VirtualKit, count: int) -> None:
    """Print the firmware's own measurement, as the real firmware does."""
    if kit.session.locating:
        cells.notify_cells(kit, cells.LAST_SEARCH, count)


def _located(kit: VirtualKit, count: int, points: list[str]) -> None:
    if not kit.session.locating:
        return
    kit.session.locating = False
    known = {measured.access_point.bssid for measured in kit.world.access_points(kit.position)}
    if len(known.intersection(points)) >= 2:
        kind = _WIFI
    elif count and kit.cells_in_range():
        kind = _MULTI_CELL if count > 1 else _SINGLE_CELL
    else:
        kit.notify("#XNRFCLOUDPOS: -1")
        return
    where = kit.position
    fields = f"{where.lat:.6f},{where.lon:.6f},{_UNCERTAINTY_M[kind]}"
    status = "0," if kit.generation > 1 else ""
    kit.notify(f"#XNRFCLOUDPOS: {status}{kind},{fields}")


COMMANDS = {
    "#XNRFCLOUD": tested(connection, "(0,1,2),<send_location>"),
    "#XNRFCLOUDPOS": only(position, RequestForm.SET),
}
