"""What an nRF93M1 hears: %BCINFO (cells) and %WIFISCAN (its AT reference).

Levels are in dBm and dB, not the indices of an nRF91.
"""

import re
from collections.abc import Callable, Sequence
from typing import Annotated

from at.commands.registration import HIGHEST_CELL_ID
from at.commands.system_mode import HIGHEST_EARFCN
from at.protocol.command import Command, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import record, within
from at.protocol.values import Fields, Record, hex_digits, name_before_colon, read_lines, read_row

_SERVING, _NEIGHBOR = "%BCINFOSC", "%BCINFONC"
_MOST_CELLS = 64
# From both ends: a name may hold commas, quotes, parentheses and any bytes.
_ACCESS_POINT = re.compile(
    r"%WIFISCAN:[ \t]*\((?P<encryption>[^,\"()]{1,32}),(?:\"(?P<ssid>.*)\")?,(?P<rssi>-[0-9]{1,3}),"
    r"\"(?P<mac>[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})\",(?P<channel>[0-9]{1,2})\)[ \t]*",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)
_CHANNELS = range(1, 15)
_WIFI_LEVELS = range(-128, 0)


class CellLevel(Record, frozen=True):
    """A cell by its frequency and physical id; `rsrp` is in dBm, `rsrq` in dB."""

    earfcn: Annotated[int, within(0, HIGHEST_EARFCN)]
    phys_cell_id: Annotated[int, within(0, 503)]
    rsrp: Annotated[int, within(-160, -20)]
    rsrq: Annotated[int, within(-43, 20)]


def _code(fewest: int, most: int) -> Callable[[Fields, str], str]:
    def read(fields: Fields, name: str) -> str:
        code = fields.quoted(name)
        if not re.fullmatch(f"[0-9]{{{fewest},{most}}}", code, re.ASCII):
            raise fields.fail(name, f"is not {fewest} to {most} digits")
        return code

    return read


def _hex(digits: int) -> Callable[[Fields, str], str]:
    def read(fields: Fields, name: str) -> str:
        text = fields.quoted(name)
        if len(text) != digits or not hex_digits(text):
            raise fields.fail(name, f"is not {digits} digits of hex")
        return text

    return read


class ServingCell(CellLevel, frozen=True):
    """The serving cell: MCC and MNC as text, cell id and area in hex."""

    mcc: Annotated[str, _code(3, 3)]
    mnc: Annotated[str, _code(2, 3)]
    cell_id: Annotated[str, _hex(8)]
    tac: Annotated[str, _hex(4)]

    @property
    def identified(self) -> bool:
        """Whether the cell id is valid: above 0FFFFFFF there is no cell."""
        return int(self.cell_id, 16) <= HIGHEST_CELL_ID


class CellInformation(Record, frozen=True):
    """Answer of %BCINFO; `serving` is None where the module is on no cell."""

    serving: ServingCell | None
    neighbors: tuple[CellLevel, ...] = ()


class ServingCellNotice(Notice, frozen=True):
    """%BCINFOSC of periodic information."""

    value: ServingCell


class NeighborCellNotice(Notice, frozen=True):
    """%BCINFONC of periodic information."""

    value: CellLevel


class HeardAccessPoint(Record, frozen=True):
    """One access point; `rssi` is in dBm, `encryption` "-" where it is not told."""

    encryption: str
    ssid: str
    rssi: int
    mac: str
    channel: int


class HeardAccessPoints(Record, frozen=True):
    """Answer of %WIFISCAN, strongest first; empty where none was heard."""

    networks: tuple[HeardAccessPoint, ...]


@at_command("AT%BCINFO")
class ReadCells(Command[CellInformation], frozen=True):
    """AT%BCINFO: the serving cell and its neighbours."""

    def parse(self, lines: Sequence[str]) -> CellInformation:
        """Return the cells of its two kinds of line. Raises ParseError."""
        serving: ServingCell | None = None
        neighbors: list[CellLevel] = []
        for line in filter(str.strip, lines):
            if name_before_colon(line) != _SERVING:
                neighbors.append(read_row(line, _NEIGHBOR, record(CellLevel)))
            elif serving is None and not neighbors:
                serving = read_row(line, _SERVING, record(ServingCell))
            else:
                raise ParseError(f"{_SERVING}: a second serving cell")
        if len(neighbors) > _MOST_CELLS:
            raise ParseError(f"{_NEIGHBOR}: {len(neighbors)} neighbours")
        return CellInformation(serving, tuple(neighbors))


@at_command("AT%BCINFO=")
class ReadCellsNow(ReadCells, frozen=True):
    """AT%BCINFO=1: likewise. AT%BCINFO=0,... sets periodic information, in notices."""

    operation: int = 1


@at_command("AT%WIFISCAN")
class ScanWifi(Command[HeardAccessPoints], frozen=True):
    """AT%WIFISCAN: a passive scan of 2.4 GHz; the first lines come after seconds."""

    def parse(self, lines: Sequence[str]) -> HeardAccessPoints:
        """Return the access points; the MAC is the key, a name may come twice."""
        return HeardAccessPoints(read_lines(lines, read_access_point))


@at_command("AT%WIFISCAN=")
class ScanWifiFor(ScanWifi, frozen=True):
    """AT%WIFISCAN=[<time ms>][,<rounds>][,<max count>][,<seconds>][,<priority>]."""

    time_ms: int = 12000
    rounds: int = 1
    most: int = 10
    seconds: int = 5
    wifi_first: int = 0


def read_access_point(line: str) -> HeardAccessPoint:
    """Return the access point of a %WIFISCAN line. Raises ParseError."""
    match = _ACCESS_POINT.fullmatch(line)
    if match is None:
        raise ParseError("%WIFISCAN: the line is not one access point in parentheses")
    rssi, channel = int(match["rssi"]), int(match["channel"])
    if rssi not in _WIFI_LEVELS or channel not in _CHANNELS:
        raise ParseError(f"%WIFISCAN: {rssi} dBm on channel {channel} is no access point")
    return HeardAccessPoint(
        match["encryption"], match["ssid"] or "", rssi, match["mac"].lower(), channel
    )


register_readers(ServingCellNotice, {_SERVING: record(ServingCell)})
register_readers(NeighborCellNotice, {_NEIGHBOR: record(CellLevel)})
