"""The state of an IP device: how a change is merged, and where wish and report differ. Pure."""

from __future__ import annotations

from typing import Any


def merge(old: Any, change: dict[str, Any]) -> dict[str, Any]:
    """Return `old` with `change` laid over it, object by object; null takes a key away."""
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def stamps(content: Any, now: int) -> Any:
    """Return when each value of a change came, in the shape of the change."""
    if isinstance(content, dict):
        return {
            key: None if value is None else stamps(value, now) for key, value in content.items()
        }
    return {"timestamp": now}


def difference(desired: dict[str, Any], reported: Any) -> dict[str, Any]:
    """Return what of `desired` is not `reported`: `state.delta`, which a device is to act on.

    Objects are compared key by key, lists as a whole; what is reported alone makes no difference.
    """
    known = reported if isinstance(reported, dict) else {}
    found = {}
    for key, value in desired.items():
        has = known.get(key)
        if isinstance(value, dict) and isinstance(has, dict):
            inner = difference(value, has)
            if inner:
                found[key] = inner
        elif (
            key not in known or has != value or isinstance(has, bool) is not isinstance(value, bool)
        ):
            found[key] = value
    return found
