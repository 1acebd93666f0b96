"""Console items as lines of JSON, from the agent that reads a console to a window that shows it.

A line is {"is": the name of the class, "item": its fields}; bytes are base64. Pure.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from agent.console.reader import ConsoleItem

_CLASSES = {kind.__name__: kind for kind in get_args(ConsoleItem)}


def encode(item: ConsoleItem) -> bytes:
    """Return `item` as a line, with its end."""
    return msgspec.json.encode({"is": type(item).__name__, "item": item}) + b"\n"


def decode(value: dict[str, Any]) -> ConsoleItem:
    """Return the item of a line that was read as JSON. Raises ValueError where it is none."""
    kind = _CLASSES.get(str(value.get("is")))
    if kind is None:
        raise ValueError(f"no console item is called {value.get('is')!r}")
    found: ConsoleItem = msgspec.convert(value.get("item"), kind)
    return found
