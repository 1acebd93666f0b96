"""Positions in the answers of the location service, checked before use.

The fields of an answer stand in one place, the class `Position`: all code that reads, sends or
shows an answer uses it.
"""

import math
from typing import Annotated

import msgspec
from msgspec import Meta

_EARTH_RADIUS_M = 6_371_008.8
_NOT_IN_MESSAGES = frozenset({"anchors", "alt"})


class Position(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={"uncertainty_m": "uncertainty", "fulfilled_with": "fulfilledWith"},
):
    """A position: degrees (WGS 84), and the radius of uncertainty in metres.

    `fulfilled_with` is what the service used (MCELL, SCELL, WIFI, ANCHOR, ...); it is text, since
    the service may add words. The true position is within the radius in 68 % of cases, 95 % with
    hiConf. `anchors` are the team's access points among those that were sent (`macAddress`,
    `name`), and `alt` is the position by cells where both were asked for (`loc`, and `dist` in
    metres): both as the service answers them, in whatever form, None where it does not. A position
    is not refused for what only comes along with it.
    """

    lat: Annotated[float, Meta(ge=-90.0, le=90.0)]
    lon: Annotated[float, Meta(ge=-180.0, le=180.0)]
    uncertainty_m: Annotated[float, Meta(ge=0.0, le=2.1e7)] | None = None
    fulfilled_with: str | None = None
    anchors: object = None
    alt: object = None

    def answer(self) -> dict[str, object]:
        """Return the position as the service answers it, without unknown fields.

        Without `anchors` and `alt` too: in a device message `alt` is an altitude.
        """
        known: dict[str, object] = msgspec.to_builtins(self)
        return {key: value for key, value in known.items() if key not in _NOT_IN_MESSAGES}

    def describe(self) -> str:
        """Return the position and its radius as text for a person."""
        radius = f" \u00b1 {self.uncertainty_m:.0f} m" if self.uncertainty_m is not None else ""
        return f"{self.lat:.5f}, {self.lon:.5f}{radius}"

    def distance_m(self, lat: float, lon: float) -> float:
        """Return the great-circle distance to another position in metres (haversine)."""
        here, there = math.radians(self.lat), math.radians(lat)
        half = math.sin((there - here) / 2) ** 2 + (
            math.cos(here) * math.cos(there) * math.sin(math.radians(lon - self.lon) / 2) ** 2
        )
        return 2 * _EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))


def position_to_json(position: Position | None) -> dict[str, object]:
    """Return the fields as the commands show them; null where a field, or all, is not known.

    `anchors` and `alt` stand there only where the service answered them.
    """
    shown: dict[str, object] = {
        "lat": position and position.lat,
        "lon": position and position.lon,
        "uncertainty": position and position.uncertainty_m,
        "fulfilled_with": position and position.fulfilled_with,
    }
    if position is not None and position.anchors is not None:
        shown["anchors"] = position.anchors
    if position is not None and position.alt is not None:
        shown["alt"] = position.alt
    return shown
