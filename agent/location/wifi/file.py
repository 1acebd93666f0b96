"""Wi-Fi from a file: JSON as the location service takes it, or the output of `iw scan`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from agent.location.access_points import AccessPoint
from agent.location.wifi.iw import parse_iw
from agent.location.wifi.scanner import WifiScan, WifiUnavailable

_LARGEST_BYTES = 4 * 1024 * 1024


_Whole = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class _AccessPoint(msgspec.Struct, rename="camel"):
    mac_address: str
    signal_strength: int
    ssid: object = ""
    channel: _Whole | None = None
    frequency: _Whole | None = None
    age: _Whole | None = None
    """In milliseconds."""


class _Scan(msgspec.Struct, rename="camel"):
    access_points: list[_AccessPoint]


@dataclass(frozen=True, slots=True)
class WifiFile:
    """A stored scan: an array of access points, or an object with `accessPoints`."""

    path: Path

    async def scan(self, deadline_s: float) -> WifiScan:  # noqa: ARG002 - a file keeps no one waiting
        """Read the file. Raises WifiUnavailable when it holds no scan."""
        try:
            with self.path.open("rb") as file:
                content = file.read(_LARGEST_BYTES + 1)
        except OSError as error:
            raise WifiUnavailable(f"{self.path}: {error.strerror}") from error
        if len(content) > _LARGEST_BYTES:
            raise WifiUnavailable(f"{self.path}: larger than {_LARGEST_BYTES} bytes is no scan")
        # Windows PowerShell saves UTF-16, Notepad a byte order mark.
        text = content.decode(json.detect_encoding(content), "replace")
        content = text.encode()
        if content.lstrip().startswith((b"{", b"[")):
            return WifiScan("file", _from_json(self.path, content))
        points = tuple(parse_iw(text))
        if not points:
            raise WifiUnavailable(
                f"{self.path}: neither JSON nor the output of `iw dev IF scan`",
                hint='write [{"macAddress": "…", "signalStrength": -60}, …]',
            )
        return WifiScan("file", points)


def _from_json(path: Path, content: bytes) -> tuple[AccessPoint, ...]:
    try:
        if content.lstrip().startswith(b"{"):
            entries = msgspec.json.decode(content, type=_Scan).access_points
        else:
            entries = msgspec.json.decode(content, type=list[_AccessPoint])
        return tuple(_access_point(entry) for entry in entries)
    except (RecursionError, ValueError) as error:
        raise WifiUnavailable(f"{path}: no list of access points: {error}") from error


def _access_point(entry: _AccessPoint) -> AccessPoint:
    return AccessPoint(
        bssid=entry.mac_address,
        rssi_dbm=entry.signal_strength,
        ssid=str(entry.ssid or "").encode("utf-8", "replace"),
        channel=entry.channel,
        frequency_mhz=entry.frequency,
        age_s=None if entry.age is None else entry.age / 1000,
    )
