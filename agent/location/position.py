"""A position as the location service answers it, checked before anyone believes it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.call import Response
from agent.errors import BadAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

_EARTH_RADIUS_M = 6_371_008.8


@dataclass(frozen=True, slots=True)
class Position:
    """A place: degrees (WGS 84), and the radius in metres that holds it.

    `fulfilled_with` is what the service used (MCELL, SCELL, WIFI, ANCHOR, ...); it is text, since
    the service may add words. The radius holds the place in 68 % of cases, 95 % with hiConf.
    """

    lat: float
    lon: float
    uncertainty_m: float | None = None
    fulfilled_with: str | None = None

    def distance_m(self, lat: float, lon: float) -> float:
        """Return the great-circle distance to another place in metres (haversine)."""
        here, there = math.radians(self.lat), math.radians(lat)
        half = math.sin((there - here) / 2) ** 2 + (
            math.cos(here) * math.cos(there) * math.sin(math.radians(lon - self.lon) / 2) ** 2
        )
        return 2 * _EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))


def parse_position(response: Response) -> Position:
    """Return the position in an answer. Raises BadAnswer, naming what is wrong with it."""
    answer = response.json()
    if not isinstance(answer, dict):
        raise BadAnswer("the location service answered JSON, but no object")
    return position_in(answer)


def position_in(answer: Mapping[str, Any]) -> Position:
    """Return the position among the fields of an answer. Raises BadAnswer as above."""
    fulfilled_with = answer.get("fulfilledWith")
    if fulfilled_with is not None and not isinstance(fulfilled_with, str):
        raise BadAnswer("fulfilledWith of the answer is no text")
    uncertainty = answer.get("uncertainty")
    return Position(
        lat=_number(answer, "lat", -90.0, 90.0),
        lon=_number(answer, "lon", -180.0, 180.0),
        uncertainty_m=None if uncertainty is None else _number(answer, "uncertainty", 0.0, 2.1e7),
        fulfilled_with=fulfilled_with,
    )


def _number(answer: Mapping[str, Any], name: str, low: float, high: float) -> float:
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadAnswer(f"{name} of the answer is missing or no number")
    # An integer of 400 digits is legal JSON and no float; NaN is in no range.
    if not low <= value <= high:
        raise BadAnswer(f"{name} of the answer is outside {low:g}..{high:g}")
    return float(value)
