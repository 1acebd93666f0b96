"""The companion that scans Wi-Fi, in ESP-AT: +CWMODE, +CWLAP, +CWLAPOPT.

It stands where the modem stands, and may have a port of its own (`at.virtual.server.serving`).
"""

from __future__ import annotations

from at.virtual.device import Reply, VirtualKit, fail, ok
from at.virtual.request import BadRequest, CommandRequest, RequestForm

STATION_MODES = {1, 3}
_WPA2 = 3
_ALL_FIELDS = 0x7FF


def mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CWMODE: 1 station, 2 access point, 3 both, 0 off."""
    if request.form is RequestForm.READ:
        return ok(f"+CWMODE:{kit.session.wifi_mode}")
    if request.form is RequestForm.TEST:
        return ok("+CWMODE:(0-3)")
    kit.session.wifi_mode = request.number(0, 0, 3)
    return ok()


def scan_options(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CWLAPOPT: whether sorted by level, and which fields."""
    request.number(0, 0, 1)
    kit.session.wifi_fields = request.number(1, 1, _ALL_FIELDS, default=_ALL_FIELDS)
    return ok()


def scan(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CWLAP: a line per access point, as a station alone."""
    if kit.session.wifi_mode not in STATION_MODES:
        return fail()
    if request.form not in {RequestForm.RUN, RequestForm.SET}:
        raise BadRequest
    ssid = request.text(0) if request.given(0) else None
    bssid = request.text(1).lower() if request.given(1) else None
    channel = request.number(2, 1, 196) if request.given(2) else None
    lines = []
    for heard in kit.world.access_points(kit.position):
        point = heard.access_point
        wanted = (
            ssid in {None, point.ssid}
            and bssid in {None, point.bssid}
            and channel in {None, point.channel}
        )
        if wanted:
            every = (
                str(_WPA2),
                f'"{point.ssid}"',
                str(heard.rssi_dbm),
                f'"{point.bssid}"',
                str(point.channel),
                *("-1", "-1", "4", "4", "7", "0"),
            )
            mask = kit.session.wifi_fields
            lines.append(f"+CWLAP:({','.join(f for i, f in enumerate(every) if mask >> i & 1)})")
    return ok(*lines, takes_s=kit.delay(2.2))


COMMANDS = {"+CWMODE": mode, "+CWLAP": scan, "+CWLAPOPT": scan_options}
