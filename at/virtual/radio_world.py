"""The simulated radio environment of the virtual modem: cells, access points, a path to follow."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, TypeVar

T = TypeVar("T")
_METRES_PER_DEGREE = 111_195.0  # on a sphere of 6371 km
_SPEED_OF_LIGHT = 299_792_458.0
_SAMPLES_PER_SECOND = 30_720_000  # 1/Ts of LTE, 3GPP TS 36.211 clause 4


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Degrees of latitude and longitude."""

    lat: float
    lon: float

    def distance_m(self, other: Coordinates) -> float:
        """Return the distance in metres, on a plane: accurate enough within a town."""
        north = (other.lat - self.lat) * _METRES_PER_DEGREE
        middle = math.radians((self.lat + other.lat) / 2)
        east = (other.lon - self.lon) * _METRES_PER_DEGREE * math.cos(middle)
        return math.hypot(north, east)


@dataclass(frozen=True, slots=True)
class SimulatedCell:
    """An LTE cell of the radio environment."""

    plmn: str
    tac: int
    eci: int
    pci: int
    earfcn: int
    band: int
    position: Coordinates
    reference_dbm: float


@dataclass(frozen=True, slots=True)
class SimulatedAccessPoint:
    """A Wi-Fi access point of the radio environment."""

    bssid: str
    ssid: str
    channel: int
    position: Coordinates
    reference_dbm: float


S = TypeVar("S", SimulatedCell, SimulatedAccessPoint)


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A cell as the modem measures it: levels, and what follows from the distance."""

    cell: SimulatedCell
    rsrp_dbm: int
    distance_m: float

    @property
    def rsrp_index(self) -> int:
        """The level as the modem reports it: index 0 is not used (TS 36.133 clause 9.1.4)."""
        level = max(-156, min(-44, self.rsrp_dbm))
        return level + 141 if level >= -140 else level + 140

    @property
    def rsrq_db(self) -> float:
        """A quality that falls with the level, from -5 dB down; half decibels."""
        return max(-19.5, min(-5.0, -5.0 - max(0, -70 - self.rsrp_dbm) * 0.25 // 0.5 * 0.5))

    @property
    def rsrq_index(self) -> int:
        """The quality as the modem reports it (TS 36.133 clause 9.1.7)."""
        return int(self.rsrq_db * 2) + 40

    @property
    def snr_index(self) -> int:
        """Signal to noise as %XMONITOR reports it: decibels plus 24."""
        return max(0, min(49, 24 + (self.rsrp_dbm + 120) // 2))

    @property
    def timing_advance(self) -> int:
        """The round trip in Ts, in the network's steps of 16."""
        samples = 2 * self.distance_m / _SPEED_OF_LIGHT * _SAMPLES_PER_SECOND
        return min(20512, round(samples / 16) * 16)


@dataclass(frozen=True, slots=True)
class MeasuredAccessPoint:
    """An access point as a scan measures it."""

    access_point: SimulatedAccessPoint
    rssi_dbm: int


class Description(TypedDict):
    """The radio environment as its file has it; losses and floors are by kind of transmitter."""

    exponent: dict[str, float]
    floor_dbm: dict[str, float]
    path_period_s: float
    path: list[tuple[float, float]]
    cells: list[dict[str, float | str]]
    access_points: list[dict[str, float | str]]


class World:
    """Cells, access points and the path. The file gives the path loss by distance."""

    def __init__(self, description: Description) -> None:
        self._exponent = description["exponent"]
        self._floor_dbm = description["floor_dbm"]
        self._period_s = float(description["path_period_s"])
        self._path = [Coordinates(*point) for point in description["path"]]
        self._cells = [_placed(SimulatedCell, entry) for entry in description["cells"]]
        self._access_points = [
            _placed(SimulatedAccessPoint, e) for e in description["access_points"]
        ]

    def position(self, seconds: float) -> Coordinates:
        """Return the kit's position that many seconds after it was switched on.

        It stands at each point of the path for one period, and turns back at the end.
        """
        last = len(self._path) - 1
        step = int(max(0.0, seconds) // self._period_s) % (2 * last)
        return self._path[step if step <= last else 2 * last - step]

    def cells(self, where: Coordinates) -> list[MeasuredCell]:
        """Return the cells in range of a position, the strongest first."""
        return [MeasuredCell(*heard) for heard in self._heard("cell", self._cells, where)]

    def access_points(self, where: Coordinates) -> list[MeasuredAccessPoint]:
        """Return the access points in range of a position, the strongest first."""
        heard = self._heard("wifi", self._access_points, where)
        return [MeasuredAccessPoint(point, level) for point, level, _ in heard]

    def _heard(
        self, kind: str, transmitters: list[S], where: Coordinates
    ) -> list[tuple[S, int, float]]:
        """Return those in range, the strongest first, each with level in dBm and distance."""
        heard = []
        for one in transmitters:
            distance_m = where.distance_m(one.position)
            loss = 10 * self._exponent[kind] * math.log10(max(distance_m, 1.0))
            level = round(one.reference_dbm - loss)
            if level >= self._floor_dbm[kind]:
                heard.append((one, level, distance_m))
        return sorted(heard, key=lambda found: -found[1])


def _placed(kind: Callable[..., T], entry: dict[str, float | str]) -> T:
    fields = {name: value for name, value in entry.items() if name not in {"lat", "lon"}}
    where = Coordinates(float(entry["lat"]), float(entry["lon"]))
    return kind(position=where, **fields)


@cache
def load_world() -> World:
    """Return the radio environment of the file beside this module."""
    path = Path(__file__).with_name("radio_world.json")
    return World(json.loads(path.read_text("utf-8")))
