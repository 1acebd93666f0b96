"""The companion chip that scans Wi-Fi, in ESP-AT: +CWMODE +CWLAP +CWLAPOPT.

It shares the kit's position. It answers on the AT port, and on a port of its own where the server
has one (`VirtualCompanion`).
"""

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, parse_request
from at.virtual.kit import Reply, VirtualKit, fail, ok

STATION_MODES = {1, 3}
_WPA2 = 3
_ALL_FIELDS = 0x7FF
_SCAN_LIMIT = 256  # bytes in one command, as ESP-AT has it


def mode(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CWMODE: 1 station, 2 access point, 3 both, 0 off."""
    if request.form is RequestForm.READ:
        return ok(f"+CWMODE:{kit.session.wifi_mode}")
    if request.form is RequestForm.TEST:
        return ok("+CWMODE:(0-3)")
    kit.session.wifi_mode = request.number(0, 0, 3)
    return ok()


def scan_options(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CWLAPOPT: order by level, and a mask of fields."""
    request.number(0, 0, 1)
    kit.session.wifi_fields = request.number(1, 1, _ALL_FIELDS, default=_ALL_FIELDS)
    return ok()


def scan(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CWLAP: a line per access point; needs a station mode."""
    if kit.session.wifi_mode not in STATION_MODES:
        return fail()
    if request.form not in {RequestForm.RUN, RequestForm.SET}:
        raise BadRequest
    ssid = request.text(0) if request.given(0) else None
    bssid = request.text(1).lower() if request.given(1) else None
    channel = request.number(2, 1, 196) if request.given(2) else None
    wanted, mask = (ssid, bssid, channel), kit.session.wifi_fields
    lines = []
    for measured in kit.world.access_points(kit.position):
        point = measured.access_point
        told = (point.ssid, point.bssid, point.channel)
        if all(asked in {None, one} for asked, one in zip(wanted, told, strict=True)):
            known = (_WPA2, f'"{point.ssid}"', measured.rssi_dbm, f'"{point.bssid}"', point.channel)
            fields = enumerate((*known, -1, -1, 4, 4, 7, 0))
            lines.append(f"+CWLAP:({','.join(str(f) for i, f in fields if mask >> i & 1)})")
    return ok(*lines, takes_s=kit.delay(2.2))


COMMANDS = {"+CWMODE": mode, "+CWLAP": scan, "+CWLAPOPT": scan_options}


class VirtualCompanion:
    """Answers ESP-AT on a port of its own, from the kit's state. It echoes until ATE0."""

    def __init__(self, kit: VirtualKit) -> None:
        self._kit = kit
        self._line = bytearray()
        self._echo = True
        self.out = bytearray()
        """What it has printed; whoever sends it removes it."""

    def receive(self, data: bytes) -> None:
        """Receive bytes at the port."""
        for byte in data:
            if self._echo:
                self.out.append(byte)
            if byte == 0x0A:
                self._run(bytes(self._line).rstrip(b"\r").decode("latin-1"))
                self._line.clear()
            elif len(self._line) < _SCAN_LIMIT:
                self._line.append(byte)

    def _run(self, text: str) -> None:
        if not text:
            return
        answer = self._answer(text)
        for line in answer.lines:
            self.out += line.encode("latin-1", "replace") + b"\r\n"
        self.out += b"\r\nERROR\r\n" if answer.failed else b"\r\nOK\r\n"

    def _answer(self, text: str) -> Reply:
        if text.upper() in {"ATE0", "ATE1"}:
            self._echo = text.endswith("1")
            return ok()
        try:
            request = parse_request(text)
            if not request.name:
                return ok()
            handler = COMMANDS.get(request.name)
            return fail() if handler is None else handler(self._kit, request)
        except BadRequest:
            return fail()
