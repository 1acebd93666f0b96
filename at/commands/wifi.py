"""Wi-Fi scan by a companion with ESP-AT: +CWMODE and +CWLAP."""

import re
from collections.abc import Sequence

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.errors import ParseError
from at.protocol.values import Record, read_lines

# From both ends: an SSID may hold commas, quotes, parentheses and any bytes.
_HEAD = re.compile(r"\+CWLAP:\s?\((?:(?P<ecn>[0-9]{1,2})(?:,|(?=\))))?", re.ASCII)
_TAIL = re.compile(
    r"(?:^|,)(?P<rssi>-?[0-9]{1,3}),\"(?P<mac>[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})\""
    r"(?:,(?P<rest>-?[0-9]+(?:,-?[0-9]+)*))?$",
    re.ASCII,
)
_REST = ("channel", "freq_offset", "freqcal_val", "pairwise", "group", "bgn", "wps")
_CHANNEL_HIGH = 196


class ScannedAccessPoint(Record, frozen=True):
    """One access point; `rssi` is in dBm, and what the firmware did not print is None."""

    ecn: int | None
    ssid: str | None
    rssi: int
    mac: str
    channel: int | None = None
    freq_offset: int | None = None
    freqcal_val: int | None = None
    pairwise: int | None = None
    group: int | None = None
    bgn: int | None = None
    wps: int | None = None


class AccessPoints(Record, frozen=True):
    """Answer of +CWLAP."""

    networks: tuple[ScannedAccessPoint, ...]


@at_command("AT+CWMODE=")
class SetWifiMode(OkCommand, frozen=True):
    """AT+CWMODE=1: a station, which may scan."""

    mode: int = 1


@at_command("AT+CWLAP")
class ScanAccessPoints(Command[AccessPoints], frozen=True):
    """AT+CWLAP: an active scan of all channels takes about 2 s, a passive one 6 s and more."""

    def parse(self, lines: Sequence[str]) -> AccessPoints:
        """Return the access points."""
        return AccessPoints(read_lines(lines, read_access_point))


@at_command("AT+CWLAP=")
class ScanOneAccessPoint(ScanAccessPoints, frozen=True):
    """AT+CWLAP=<filters>: by SSID, MAC, channel."""

    ssid: str | None = None
    mac: str | None = None
    channel: int | None = None


def read_access_point(line: str) -> ScannedAccessPoint:
    """Return the access point of a +CWLAP line. Raises ParseError."""
    head = _HEAD.match(line)
    text = line.rstrip()
    if head is None or not text.endswith(")"):
        raise ParseError("+CWLAP: the line is not one access point in parentheses")
    middle = text[head.end() : -1]
    tail = _TAIL.search(middle)
    if tail is None:
        raise ParseError("+CWLAP: the line ends in no level and no address")
    ssid = middle[: tail.start()]
    if ssid and (len(ssid) < 2 or ssid[0] != '"' or ssid[-1] != '"'):
        raise ParseError("+CWLAP: the name is not in quotes")
    rssi = int(tail["rssi"])
    if not -128 <= rssi <= 0:
        raise ParseError(f"+CWLAP: a level of {rssi} dBm is none")
    rest = [int(number) for number in (tail["rest"] or "").split(",") if number]
    if len(rest) > len(_REST) or (rest and not 0 <= rest[0] <= _CHANNEL_HIGH):
        raise ParseError("+CWLAP: what follows the address is not what follows one")
    return ScannedAccessPoint(
        ecn=int(head["ecn"]) if head["ecn"] else None,
        ssid=ssid[1:-1] if ssid else None,
        rssi=rssi,
        mac=tail["mac"].lower(),
        **dict(zip(_REST, rest, strict=False)),
    )
