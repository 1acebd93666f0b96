"""Positions from scans, in the made-up radio world that the virtual modem uses as well.

The two share the data file only. Levels fall with the distance by the file's formula, so a level
gives a distance, and several distances give a position.
"""

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

_EARTH_M = 6_371_000.0
_ROUNDING_DB = 0.6
"""Levels are whole decibels; a little more for what a scanner converts them from."""
_CELL_RANGE_M = 3000.0
"""Metres from a cell that a device may be when no level is known."""
TOWN_M = 10_000
"""Metres that the town reaches from the middle of the cells."""
_METRES_PER_TIMING_STEP = 4.884
"""Half the way of light in one Ts of LTE, 1/30.72 MHz (3GPP TS 36.211, clause 4)."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A position; the uncertainty is a radius in metres that holds 68 % of the cases."""

    lat: float
    lon: float
    uncertainty_m: float
    method: str
    """WIFI, MCELL or SCELL."""


class ReportedNeighbor(msgspec.Struct):
    """A neighbor cell as a device reports it; -1 stands for what it does not know."""

    earfcn: float = -1
    pci: float = -1
    rsrp: float | None = None


class ReportedCell(msgspec.Struct):
    """A cell as a device reports it. A whole number may be written as `5.0`."""

    mcc: float | str
    mnc: float | str
    eci: float
    tac: float
    rsrp: float | None = None
    adv: float = 65535
    nmr: list[ReportedNeighbor] = []

    @property
    def plmn(self) -> tuple[int, int]:
        """The codes of country and network."""
        return int(self.mcc), int(self.mnc)


class _Point(msgspec.Struct):
    lat: float
    lon: float


class _Transmitter(_Point):
    reference_dbm: float


class _AccessPoint(_Transmitter):
    bssid: str


class _Cell(_Transmitter):
    plmn: str
    tac: int
    eci: int
    earfcn: int
    pci: int


class _Data(msgspec.Struct):
    """The data file."""

    exponent: dict[str, float]
    cells: list[_Cell]
    access_points: list[_AccessPoint]


@dataclass(frozen=True, slots=True)
class _Ring:
    """A transmitter at x, y metres from the origin of the world, and the distance to it."""

    x: float
    y: float
    distance_m: float


class RadioWorld:
    """The transmitters of the data file, by their names in a scan."""

    def __init__(self, data: _Data) -> None:
        self._exponent = data.exponent
        self._cells: dict[tuple[tuple[int, int], float], _Cell] = {}
        self._by_channel: dict[tuple[float, float], list[_Cell]] = {}
        for cell in data.cells:
            self._cells[_plmn(cell.plmn), cell.eci] = cell
            self._by_channel.setdefault((cell.earfcn, cell.pci), []).append(cell)
        self._access_points = {ap.bssid.lower(): ap for ap in data.access_points}
        self._lat0 = sum(cell.lat for cell in data.cells) / len(data.cells)
        self._lon0 = sum(cell.lon for cell in data.cells) / len(data.cells)

    def by_wifi(self, scan: Sequence[tuple[str, float]]) -> Fix | None:
        """Return the position of a Wi-Fi scan: pairs of address with colons, and level in dBm."""
        rings = []
        for address, level in scan:
            transmitter = self._access_points.get(address.lower())
            if transmitter is not None:
                rings.append(self._ring("wifi", transmitter, level))
        return self._fix(rings, "wifi", "WIFI")

    def by_cells(self, cells: Sequence[ReportedCell], *, fallback: bool) -> Fix | None:
        """Return the position of cells; with `fallback`, at worst that of the tracking area."""
        rings = []
        for reported in cells:
            serving = self._cells.get((reported.plmn, reported.eci))
            if serving is None:
                continue
            if reported.rsrp is not None:
                rings.append(self._ring("cell", serving, reported.rsrp))
            else:
                known = reported.adv != 65535
                away = reported.adv * _METRES_PER_TIMING_STEP + 80 if known else _CELL_RANGE_M
                rings.append(_Ring(*self._metres(serving), away))
            for neighbor in reported.nmr:
                transmitter = self._neighbor(neighbor, serving)
                if transmitter is not None and neighbor.rsrp is not None:
                    rings.append(self._ring("cell", transmitter, neighbor.rsrp))
        fix = self._fix(rings, "cell", "SCELL" if len(rings) == 1 else "MCELL")
        return fix or (self._by_area(cells) if fallback else None)

    def address(self, lat: float, lon: float) -> dict[str, str] | None:
        """Return the made-up address of a point in the town, None outside of it."""
        x, y = self._metres(_Point(lat, lon))
        if math.hypot(x, y) > TOWN_M:
            return None
        return {"country": "Testland", "state": "Radio Province", "city": "Made-up Town"}

    def _by_area(self, cells: Sequence[ReportedCell]) -> Fix | None:
        """Return the middle of the tracking area of the first cell whose area is known."""
        for reported in cells:
            members = [
                self._metres(cell)
                for (network, _), cell in self._cells.items()
                if network == reported.plmn and cell.tac == reported.tac
            ]
            if members:
                x = sum(m[0] for m in members) / len(members)
                y = sum(m[1] for m in members) / len(members)
                radius = max(math.hypot(m[0] - x, m[1] - y) for m in members) + _CELL_RANGE_M
                return self._placed(x, y, radius, "SCELL")
        return None

    def _neighbor(self, reported: ReportedNeighbor, serving: _Cell) -> _Cell | None:
        """Return the cell of that channel and physical id; the nearest, as networks plan them."""
        candidates = self._by_channel.get((reported.earfcn, reported.pci), [])
        here = self._metres(serving)
        return min(candidates, key=lambda cell: math.dist(here, self._metres(cell)), default=None)

    def _ring(self, kind: str, transmitter: _Transmitter, level_dbm: float) -> _Ring:
        x, y = self._metres(transmitter)
        loss = transmitter.reference_dbm - level_dbm
        return _Ring(x, y, max(1.0, 10 ** (loss / (10 * self._exponent[kind]))))

    def _fix(self, rings: list[_Ring], kind: str, method: str) -> Fix | None:
        if not rings:
            return None
        if len(rings) == 1:
            (ring,) = rings
            return self._placed(ring.x, ring.y, ring.distance_m * 1.1 + 5, method)
        relative = 10 ** (_ROUNDING_DB / (10 * self._exponent[kind])) - 1
        x, y, radius = _locate(rings, relative)
        return self._placed(x, y, radius, method)

    def _metres(self, point: _Point) -> tuple[float, float]:
        north = math.radians(point.lat - self._lat0) * _EARTH_M
        east = math.radians(point.lon - self._lon0) * _EARTH_M
        return east * math.cos(math.radians(self._lat0)), north

    def _placed(self, x: float, y: float, radius_m: float, method: str) -> Fix:
        lat = self._lat0 + math.degrees(y / _EARTH_M)
        lon = self._lon0 + math.degrees(x / _EARTH_M / math.cos(math.radians(self._lat0)))
        return Fix(round(lat, 7), round(lon, 7), round(radius_m, 3), method)


@cache
def radio_world() -> RadioWorld:
    """Return the world of the data file that lies in the package of the AT driver."""
    # Located, not imported: only the data of that package is used here.
    spec = importlib.util.find_spec("at")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(next(iter(spec.submodule_search_locations)))
    data = (folder / "virtual" / "radio_world.json").read_bytes()
    return RadioWorld(msgspec.json.decode(data, type=_Data))


def _plmn(text: str) -> tuple[int, int]:
    return int(text[:3]), int(text[3:])


def _locate(rings: Sequence[_Ring], relative: float) -> tuple[float, float, float]:
    """Return x, y and a radius, all in metres: the point that fits the distances best.

    Distances have a relative error, so short ones count more. Starts from several points, since
    on the other side of a row of transmitters a second point fits nearly as well.
    """
    points = _candidates(rings)
    misfits = [_misfit(point, rings) for point in points]
    least = min(misfits)
    best = points[misfits.index(least)]
    spread = max(relative, math.sqrt(least / len(rings)))
    radius = 2.5 * spread * _dilution(best, rings) + 5
    # The circle includes other points that fit about as well.
    as_good = 4 * least + len(rings) * relative**2
    others = [point for point, misfit in zip(points, misfits, strict=True) if misfit <= as_good]
    return best[0], best[1], radius + max(math.dist(best, point) for point in others)


def _candidates(rings: Sequence[_Ring]) -> list[tuple[float, float]]:
    near = sorted(rings, key=lambda ring: ring.distance_m)[:3]
    starts = [(sum(r.x for r in near) / len(near), sum(r.y for r in near) / len(near))]
    first = near[0]
    for step in range(8):
        angle = step * math.pi / 4
        starts.append(
            (
                first.x + first.distance_m * math.cos(angle),
                first.y + first.distance_m * math.sin(angle),
            )
        )
    return [_descend(start, rings) for start in starts]


def _misfit(point: tuple[float, float], rings: Sequence[_Ring]) -> float:
    x, y = point
    return sum(
        ((max(1.0, math.hypot(x - r.x, y - r.y)) - r.distance_m) / r.distance_m) ** 2 for r in rings
    )


def _descend(point: tuple[float, float], rings: Sequence[_Ring]) -> tuple[float, float]:
    """Gauss and Newton's method, damped, for at most 30 steps."""
    x, y = point
    for _ in range(30):
        xx, xy, yy, gx, gy = _normal((x, y), rings)
        damping = 1e-6 * (xx + yy) + 1e-12
        determinant = (xx + damping) * (yy + damping) - xy * xy
        dx = (-(yy + damping) * gx + xy * gy) / determinant
        dy = (xy * gx - (xx + damping) * gy) / determinant
        x, y = x + 0.7 * dx, y + 0.7 * dy
        if math.hypot(dx, dy) < 0.01:
            break
    return x, y


def _normal(
    point: tuple[float, float], rings: Sequence[_Ring]
) -> tuple[float, float, float, float, float]:
    """Return the normal matrix of the relative misfits, and their gradient."""
    xx = xy = yy = gx = gy = 0.0
    for ring in rings:
        dx, dy = point[0] - ring.x, point[1] - ring.y
        far = max(1.0, math.hypot(dx, dy))
        ux, uy = dx / far / ring.distance_m, dy / far / ring.distance_m
        miss = (far - ring.distance_m) / ring.distance_m
        xx, xy, yy = xx + ux * ux, xy + ux * uy, yy + uy * uy
        gx, gy = gx + ux * miss, gy + uy * miss
    return xx, xy, yy, gx, gy


def _dilution(point: tuple[float, float], rings: Sequence[_Ring]) -> float:
    """Return the error of the position, in metres, for a relative error of 1 in the distances."""
    xx, xy, yy, _, _ = _normal(point, rings)
    determinant = xx * yy - xy * xy
    nearest = min(ring.distance_m for ring in rings)
    if determinant <= 1e-9 * (xx + yy) ** 2:
        return 4 * nearest  # all in one line, across which nothing is known
    return math.sqrt((xx + yy) / determinant)
