"""JSON from outside, held to what an answer and the state file can say again."""

from __future__ import annotations

from typing import Any

import msgspec

MAX_DEPTH = 64
"""Of lists and objects inside each other."""
_LEAST, _MOST = -(2**63), 2**64 - 1
"""What MessagePack, and so the state file, holds as a whole number."""


class BadJSON(ValueError):
    """The bytes are no JSON, or hold what could not be kept."""


def decode(raw: bytes) -> Any:
    """Return a JSON value; whole numbers beyond 64 bits come as floats. Raises BadJSON."""
    try:
        holder = [msgspec.json.decode(raw)]
        _hold_to_bounds(holder)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, OverflowError) as error:
        raise BadJSON(str(error)) from error
    return holder[0]


def _hold_to_bounds(holder: list[Any]) -> None:
    waiting: list[tuple[Any, int]] = [(holder, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise BadJSON(f"it is nested deeper than {MAX_DEPTH}")
        for key, inner in one.items() if isinstance(one, dict) else enumerate(one):
            if isinstance(inner, dict | list):
                waiting.append((inner, depth + 1))
            elif isinstance(inner, int) and not _LEAST <= inner <= _MOST:
                one[key] = float(inner)
