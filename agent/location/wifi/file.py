"""Wi-Fi from a file: JSON as the location service takes it, or the output of `iw scan`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agent.location.access_points import AccessPoint
from agent.location.wifi.iw import parse_iw
from agent.location.wifi.scanner import WifiScan, WifiUnavailable

_LARGEST_BYTES = 4 * 1024 * 1024


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
        if content.lstrip().startswith((b"{", b"[")):
            return WifiScan("file", _from_json(self.path, content))
        points = tuple(parse_iw(content.decode("utf-8", "replace")))
        if not points:
            raise WifiUnavailable(
                f"{self.path}: neither JSON nor the output of `iw dev IF scan`",
                hint='write [{"macAddress": "…", "signalStrength": -60}, …]',
            )
        return WifiScan("file", points)


def _from_json(path: Path, content: bytes) -> tuple[AccessPoint, ...]:
    try:
        document: Any = msgspec.json.decode(content)
        entries = document["accessPoints"] if isinstance(document, dict) else document
        return tuple(_access_point(entry) for entry in entries)
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, ValueError) as error:
        raise WifiUnavailable(f"{path}: no list of access points: {error}") from error


def _access_point(entry: Any) -> AccessPoint:
    level = entry["signalStrength"]
    if isinstance(level, bool) or not isinstance(level, int):
        raise TypeError(f"signalStrength {level!r} is no integer")
    age = _whole(entry, "age")
    return AccessPoint(
        bssid=str(entry["macAddress"]),
        rssi_dbm=level,
        ssid=str(entry.get("ssid", "")).encode("utf-8", "replace"),
        channel=_whole(entry, "channel"),
        frequency_mhz=_whole(entry, "frequency"),
        age_s=None if age is None else age / 1000,
    )


def _whole(entry: Any, name: str) -> int | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise TypeError(f"{name} {value!r} is no whole number")
    return int(value)
