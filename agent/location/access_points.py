"""Wi-Fi access points of a scan, and the choice of those that are sent to the service (D8.1)."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

MINIMUM = 2
"""Access points below which the service finds no position (it answers 422)."""

_MAC = re.compile(r"[0-9a-f]{2}([:-]?)(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AccessPoint:
    """One access point of a scan.

    `bssid` is six hex pairs. `rssi_dbm` is -128..-1. `ssid` is bytes: a network's name need not be
    text. `age_s` is the time since it was heard in seconds, `frequency_mhz` and `channel` its
    frequency; None where not known.
    """

    bssid: str
    rssi_dbm: int
    ssid: bytes = b""
    channel: int | None = None
    frequency_mhz: int | None = None
    age_s: float | None = None


class Exclusion(Enum):
    """The reason why an access point is not sent."""

    NOT_A_MAC = "no MAC address"
    MULTICAST = "multicast address"
    LOCAL = "locally administered address (a phone, a guest network)"
    EMPTY = "address of zeros"
    NOMAP = "its owner asked to be left out (_nomap)"
    DOUBLE = "heard twice, the newer one is kept"
    LEVEL = "level outside -128..-1 dBm"


@dataclass(frozen=True, slots=True)
class Selection:
    """The access points that may be sent, strongest first, and the others with the reason."""

    usable: tuple[AccessPoint, ...]
    left_out: tuple[tuple[AccessPoint, Exclusion], ...]


def normalize_mac(text: str) -> str | None:
    """Return a MAC address as lower-case pairs with colons; None if `text` is none.

    Pairs may be separated by colons, by hyphens or by nothing.
    """
    if not _MAC.fullmatch(text):
        return None
    digits = re.sub("[:-]", "", text).lower()
    return ":".join(digits[start : start + 2] for start in range(0, 12, 2))


def select_usable(scan: Sequence[AccessPoint]) -> Selection:
    """Divide a scan into those that are sent and the others. Weak ones are sent: each one helps."""
    usable: dict[str, AccessPoint] = {}
    # One that hides its name is heard twice: its beacons have none, its answers to probes do.
    nomap = {normalize_mac(one.bssid) for one in scan if one.ssid.endswith(b"_nomap")}
    left_out: list[tuple[AccessPoint, Exclusion]] = []
    for point in scan:
        bssid = normalize_mac(point.bssid)
        reason = _reason(point, bssid) or (Exclusion.NOMAP if bssid in nomap else None)
        if bssid is None or reason is not None:
            left_out.append((point, reason or Exclusion.NOT_A_MAC))
            continue
        other = usable.get(bssid)
        if other is not None and (other.age_s or 0.0) <= (point.age_s or 0.0):
            left_out.append((point, Exclusion.DOUBLE))
            continue
        if other is not None:
            left_out.append((other, Exclusion.DOUBLE))
        usable[bssid] = point
    strongest_first = sorted(usable.values(), key=lambda point: -point.rssi_dbm)
    return Selection(tuple(strongest_first), tuple(left_out))


def _reason(point: AccessPoint, bssid: str | None) -> Exclusion | None:
    if bssid is None:
        return Exclusion.NOT_A_MAC
    if bssid == "00:00:00:00:00:00":
        return Exclusion.EMPTY
    first = int(bssid[:2], 16)
    if first & 1:
        return Exclusion.MULTICAST
    if first & 2:
        return Exclusion.LOCAL
    if not -128 <= point.rssi_dbm < 0:
        return Exclusion.LEVEL
    return None


def access_points_to_json(
    points: Sequence[AccessPoint], *, send_ssid: bool = False
) -> list[dict[str, object]]:
    """Return access points as the service takes them, without unknown values."""
    entries: list[dict[str, object]] = []
    for point in points:
        entry: dict[str, object] = {
            "macAddress": normalize_mac(point.bssid),
            "signalStrength": point.rssi_dbm,
        }
        if send_ssid and point.ssid:
            entry["ssid"] = point.ssid.decode("utf-8", "replace")
        if point.age_s is not None:
            entry["age"] = round(point.age_s * 1000)
        # The service takes one of the two, not both. Channel 1 is there at 2.4 and at 6 GHz.
        if point.frequency_mhz is not None:
            entry["frequency"] = point.frequency_mhz
        elif point.channel is not None:
            entry["channel"] = point.channel
        entries.append(entry)
    return entries


def channel_of(frequency_mhz: int) -> int | None:
    """Return the IEEE 802.11 channel of a centre frequency in MHz; None outside the bands."""
    if frequency_mhz == 2484:
        return 14
    if 2412 <= frequency_mhz <= 2472:
        return (frequency_mhz - 2407) // 5
    if 5160 <= frequency_mhz <= 5885:
        return (frequency_mhz - 5000) // 5
    if 5955 <= frequency_mhz <= 7115:
        return (frequency_mhz - 5950) // 5
    return None


def rssi_of_percentage(strength: int) -> int:
    """Return dBm for NetworkManager's strength in percent: it maps -100..-40 dBm to 0..100."""
    return -40 - math.ceil(3 * (100 - min(max(strength, 0), 100)) / 5)
