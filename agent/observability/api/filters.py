"""The filters of a list of resources, and the times among them (clauses O2.3, O2.4). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agent.errors import UsageError

_PARAMETER = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
# The filters of the reference that are times, by how their names end.
_TIME_NAME = re.compile(r"(^|_)(date|since|until|seen|before|after)$")


def time_parameter(when: datetime) -> str:
    """Return an aware time as a query parameter: UTC, whole seconds, `Z`. Raises UsageError."""
    if when.tzinfo is None:
        raise UsageError("a time without a time zone cannot be sent")
    # Not strftime: it does not pad years below 1000.
    return when.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def is_time_name(name: str) -> bool:
    """Return whether a filter of this name is a time."""
    return _TIME_NAME.search(name) is not None


def checked_time(text: str, name: str) -> str:
    """Return a time parameter given as text. Raises UsageError where the service would refuse."""
    try:
        if _PARAMETER.fullmatch(text):
            datetime.fromisoformat(text)
            return text
    except ValueError:
        pass
    raise UsageError(
        f"{name}: {text!r} is not a valid time", hint="write it in UTC, as 2026-01-31T23:59:59Z"
    )


def filter_query(filters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return filters as parameters; a name is repeated for each of several values (O2.4).

    Raises UsageError for a time that the service would refuse, and for an unusable value.
    """
    query: list[tuple[str, str]] = []
    for shown, values in filters.items():
        # The reference writes a list-valued parameter with `[]`, which is not sent.
        name = shown.removesuffix("[]")
        several = values if isinstance(values, list | tuple | set | frozenset) else [values]
        query += [(name, _parameter(name, value)) for value in several]
    return query


def _parameter(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return time_parameter(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise UsageError(f"{name}: {value!r} cannot be a filter")
    return checked_time(value, name) if is_time_name(name) else value
