"""Times of the observability service: aware, both ways (clause O2.3). Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from agent.errors import BadAnswer, UsageError

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
    """Tell whether a filter of this name is a time."""
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


def read_time(text: object) -> datetime:
    """Return a time of an answer: ISO 8601 with its offset. Raises BadAnswer for a naive one."""
    try:
        when = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise BadAnswer(f"{text!r} is no time with an offset")
    return when
