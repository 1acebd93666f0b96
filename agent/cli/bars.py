"""A level as a bar of characters, for a table that people read."""

from __future__ import annotations

_WIDTH = 10


def bar(value: object, low: float, high: float) -> str:
    """Return a bar for `value` between `low` and `high`; "" when there is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return "\u2588" * round(share * _WIDTH) or "\u258f"
