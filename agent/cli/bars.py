"""A level as a bar of characters, for what people read."""

from __future__ import annotations

TABLE_WIDTH = 10


def bar(value: object, low: float, high: float, width: int = TABLE_WIDTH) -> str:
    """Return a bar of `width` characters for `value` between `low` and `high`.

    What is not filled is dotted; all of it, where there is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "\u00b7" * width
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    filled = round(share * width)
    return "\u2588" * filled + "\u00b7" * (width - filled)
