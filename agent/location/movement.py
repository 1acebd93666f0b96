"""A change of place: when it is one, and how the device cloud is told (a device message)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent.errors import BadAnswer
from agent.location.position import position_in

if TYPE_CHECKING:
    from agent.location.locator import Fix

MOVED_M = 100.0
"""Two positions nearer than this are one place, however certain both are."""


def moved(reported: Mapping[str, Any] | None, fix: Fix) -> bool:
    """Tell whether a fix is another place than the one that was told last.

    `reported` is what `Fix.to_json` gave, or None where nothing was told yet. Two positions are
    two places when they are further apart than their uncertainties explain. A fix without a
    position (none was asked for) is no place.
    """
    if fix.position is None:
        return False
    try:
        before = position_in(reported or {})
    except BadAnswer:
        return True  # nothing that can be compared with was told
    apart = fix.position.distance_m(before.lat, before.lon)
    return apart > max(MOVED_M, (before.uncertainty_m or 0.0) + (fix.position.uncertainty_m or 0.0))


def position_message(fix: Fix) -> dict[str, object]:
    """Return the device message that tells a fix; for `agent.cloud.messages.SendMessage`.

    GROUND_FIX with the fields of a ground-fix answer: GNSS would claim that satellites were heard.
    """
    assert fix.position is not None
    place = fix.position
    data: dict[str, object] = {"lat": place.lat, "lon": place.lon}
    if place.uncertainty_m is not None:
        data["uncertainty"] = place.uncertainty_m
    if place.fulfilled_with is not None:
        data["fulfilledWith"] = place.fulfilled_with
    return {
        "appId": "GROUND_FIX",
        "messageType": "DATA",
        "data": data,
        "ts": round(fix.at.timestamp() * 1000),
    }
