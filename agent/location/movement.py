"""Decides whether a kit has moved, and makes the device message that reports it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.errors import BadAnswer
from agent.location.locator import Fix
from agent.location.position import position_in

MOVED_M = 100.0
"""In metres: two positions nearer than this are one place, however certain both are."""


def moved(reported: Mapping[str, Any] | None, fix: Fix) -> bool:
    """Return whether the kit has moved since the position that was reported last.

    `reported` is what `Fix.to_json` gave for that, None where nothing was reported yet: then any
    position counts. A kit has moved when the two are further apart than their uncertainties
    explain. A fix without a position (none was asked for) never counts.
    """
    if fix.position is None:
        return False
    try:
        before = position_in(reported or {})
    except BadAnswer:
        return True  # nothing was reported that can be compared with
    apart = fix.position.distance_m(before.lat, before.lon)
    return apart > max(MOVED_M, (before.uncertainty_m or 0.0) + (fix.position.uncertainty_m or 0.0))


def position_message(fix: Fix) -> dict[str, object]:
    """Return the device message that reports a fix, for `agent.cloud.messages.SendMessage`.

    GROUND_FIX with the fields of a ground-fix answer: GNSS would claim that satellites were heard.
    """
    assert fix.position is not None
    return {
        "appId": "GROUND_FIX",
        "messageType": "DATA",
        "data": fix.position.answer(),
        "ts": round(fix.at.timestamp() * 1000),
    }
