"""Which lines of a log are written, so that a month of it can be read. Pure: times are arguments.

A line that is like one before, but for numbers, is told in full once an hour; in between a few
times more without its advice, and then only counted.
"""

import logging
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

T = TypeVar("T")
AGAIN_S = 3600.0
"""After so long a line is told in full again."""
MOST_AGAIN = 5
"""Short repetitions of one line within that time."""
MOST_LINES = 60
"""Lines of one concern within that time, whatever they say."""
_MOST_KINDS = 64  # of lines that are remembered
_ADVICE = "; try: "
_NUMBER = re.compile(r"\d+(\.\d+)?")


def differ_in_numbers_only(one: str, other: str) -> bool:
    """Return whether two lines are equal but for numbers: seconds, tries, port numbers."""
    return _kind_of(one) == _kind_of(other)


def _kind_of(line: str) -> str:
    return _NUMBER.sub("#", line)


@dataclass(slots=True)
class _Told:
    since: float
    again: int = 0
    hidden: int = 0


class LineLimit:
    """Decides about the lines of one concern."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}
        self._all = _Told(float("-inf"))

    def admit(self, line: str, now: float) -> str | None:
        """Return what is to be written of a line at `now` (seconds), None for nothing."""
        if not 0 <= now - self._all.since < AGAIN_S:
            self._all = _Told(now)
        kind = _kind_of(line)
        told = self._told.get(kind)
        if told is not None and 0 <= now - told.since < AGAIN_S:
            told.again += 1
            if told.again > MOST_AGAIN or not self._has_room():
                told.hidden += 1
                return None
            return f"{line.partition(_ADVICE)[0]} (again)"
        if not self._has_room():
            return None
        hidden = 0 if told is None else told.hidden
        _remember(self._told, kind, _Told(now))
        more = f" (and {hidden} times more in the hour before)" if hidden else ""
        what, advice, way_out = line.partition(_ADVICE)
        return f"{what}{more}{advice}{way_out}"

    def _has_room(self) -> bool:
        self._all.again += 1
        return self._all.again <= MOST_LINES


class AdviceOnce:
    """Leaves out advice that a line has given within the hour, whichever concern's it was."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def admit(self, line: str, now: float) -> str:
        """Return the line as it is to be written at `now` (seconds)."""
        what, _, advice = line.partition(_ADVICE)
        told = self._told.get(advice)
        if told is not None and 0 <= now - told < AGAIN_S:
            at = datetime.fromtimestamp(told, UTC).astimezone()
            return f"{what} (what to try: see {at:%H:%M:%S})"
        if advice:
            _remember(self._told, advice, now)
        return line


def _remember(told: dict[str, T], what: str, value: T) -> None:
    """Put something behind all that is remembered; the oldest goes for it."""
    told.pop(what, None)
    told[what] = value
    if len(told) > _MOST_KINDS:
        del told[next(iter(told))]


class RepeatedLines(logging.Filter):
    """Limits what the parts of the agent log that no concern logs for them."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = LineLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass that is not repeated, or that a concern has let pass."""
        if hasattr(record, "concern") or record.levelno < logging.WARNING:
            return True
        line = self._limit.admit(record.getMessage(), time.time())
        if line is not None:
            record.msg, record.args = line, None
        return line is not None
