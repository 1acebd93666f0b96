"""Positions in the answers of the location service, checked before use.

The fields of an answer stand in one place, the class `Position`: all code that reads, sends or
shows an answer uses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agent.call import Response
from agent.errors import BadAnswer

Check = Callable[[str, object], object]
"""Takes a field's name and value, returns the value. Raises BadAnswer."""
_EARTH_RADIUS_M = 6_371_008.8


def _number(low: float, high: float) -> Check:
    """Return the check of a number within a range; it returns a float."""

    def check(name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadAnswer(f"{name} of the answer is missing or no number")
        # An integer of 400 digits is legal JSON and no float; NaN is in no range.
        if not low <= value <= high:
            raise BadAnswer(f"{name} of the answer is outside {low:g}..{high:g}")
        return float(value)

    return check


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadAnswer(f"{name} of the answer is no text")
    return value


def _objects(name: str, value: object) -> tuple[dict[str, object], ...]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise BadAnswer(f"{name} of the answer is no list of objects")
    return tuple(value)


def _object(name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise BadAnswer(f"{name} of the answer is no object")
    return value


def _answered(key: str, check: Check, shown: str = "") -> dict[str, object]:
    """Return a field's metadata: its key in an answer, its check, its key in our JSON."""
    return {"key": key, "check": check, "shown": shown or key}


@dataclass(frozen=True, slots=True)
class Position:
    """A position: degrees (WGS 84), and the radius of uncertainty in metres.

    `fulfilled_with` is what the service used (MCELL, SCELL, WIFI, ANCHOR, ...); it is text, since
    the service may add words. The true position is within the radius in 68 % of cases, 95 % with
    hiConf. `anchors` are the team's access points among those that were sent (`macAddress`,
    `name`), and `alt` is the position by cells where both were asked for (`loc`, and `dist` in
    metres): both as the service answers them, None where it does not.
    """

    lat: float = field(metadata=_answered("lat", _number(-90.0, 90.0)))
    lon: float = field(metadata=_answered("lon", _number(-180.0, 180.0)))
    uncertainty_m: float | None = field(
        default=None, metadata=_answered("uncertainty", _number(0.0, 2.1e7))
    )
    fulfilled_with: str | None = field(
        default=None, metadata=_answered("fulfilledWith", _text, shown="fulfilled_with")
    )
    anchors: tuple[dict[str, object], ...] | None = field(
        default=None, metadata=_answered("anchors", _objects)
    )
    alt: dict[str, object] | None = field(default=None, metadata=_answered("alt", _object))

    def answer(self) -> dict[str, object]:
        """Return the position as the service answers it, without unknown fields.

        Without `anchors` and `alt` too: in a device message `alt` is an altitude.
        """
        values = {one.metadata["key"]: getattr(self, one.name) for one in fields(self)[:4]}
        return {key: value for key, value in values.items() if value is not None}

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


def parse_position(response: Response) -> Position:
    """Return the position in an answer. Raises BadAnswer, naming what is wrong with it."""
    return position_in(response.decode(dict[str, object]))


def position_in(answer: Mapping[str, object]) -> Position:
    """Return the position among the fields of an answer. Raises BadAnswer as above."""
    values: dict[str, Any] = {}
    for one in fields(Position):
        key, value = one.metadata["key"], answer.get(one.metadata["key"])
        optional = one.default is None and value is None
        values[one.name] = None if optional else one.metadata["check"](key, value)
    return Position(**values)


def position_to_json(position: Position | None) -> dict[str, object]:
    """Return the fields as the commands show them; null where a field, or all, is not known.

    `anchors` and `alt` stand there only where the service answered them.
    """
    values = {one.metadata["shown"]: getattr(position, one.name, None) for one in fields(Position)}
    return {
        key: value
        for key, value in values.items()
        if value is not None or key not in {"anchors", "alt"}
    }
