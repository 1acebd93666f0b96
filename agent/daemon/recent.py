"""What happened to one kit lately: its console, its AT lines, calls in its name, what was decided.

Kept from the start of the agent on, whether or not somebody looks, within bounds. AT lines come
without secrets; whoever writes moments to a file takes identities out as well.
"""

from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import chain, takewhile
from operator import attrgetter

import msgspec

from agent.console.line_classifier import ConsoleItem, Overlong
from agent.console.log_line import LogLine
from agent.tasks import Changing
from at.transcripts.steps import TranscriptStep

CONSOLE, AT, HTTP, DECISIONS, NETWORK = "console", "at", "http", "decisions", "network"
LIMITS = {CONSOLE: 96 * 1024, AT: 96 * 1024, HTTP: 24 * 1024, DECISIONS: 24 * 1024, NETWORK: 8192}
"""Bytes that each lane keeps of a kit, of 248 KiB in all: one that talks takes no other's room."""
MOMENT_BYTES = 256
"""What a moment takes beside its text."""
LONGEST = 4096  # characters
_ROOM = 64  # characters, for what is said of a line that is cut
_BY_NUMBER = attrgetter("number")


class Moment(msgspec.Struct, frozen=True):
    """One thing that happened; numbered from 1. `level` is error, warning, info, debug, note or "".

    An AT line begins with > where it was sent, with < where it was received.
    """

    number: int
    lane: str
    at: datetime
    text: str
    level: str = ""


class RecentMoments(Changing):
    """The newest moments of each lane, and how many there were."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.count = 0
        self.clock = clock
        self._lanes: dict[str, deque[Moment]] = {name: deque() for name in LIMITS}
        self._bytes = dict.fromkeys(LIMITS, 0)

    def add(self, lane: str, text: str, level: str = "") -> None:
        """Add what happens now."""
        self._add(lane, [(text, level)])

    def _add(self, lane: str, told: Sequence[tuple[str, str]]) -> None:
        """Add texts with their levels; one that is too long is cut, with its length."""
        now = datetime.fromtimestamp(round(self.clock(), 3), UTC)
        for text, level in told:
            self.put(Moment(self.count + 1, lane, now, _cut(text), level))
        self.notify_changed()

    def put(self, moment: Moment) -> None:
        """Add a moment that has its number."""
        if (lane := self._lanes.get(moment.lane)) is None:
            return  # of a newer agent
        self.count = moment.number
        lane.append(moment)
        self._bytes[moment.lane] += _size(moment)
        while self._bytes[moment.lane] > LIMITS[moment.lane]:
            self._bytes[moment.lane] -= _size(lane.popleft())

    def add_console(self, items: Sequence[ConsoleItem]) -> None:
        """Add the lines that a kit printed."""
        lines = []
        for item in items:
            if isinstance(item, LogLine):
                lines.append((item.line or item.text, item.level or ""))
            elif isinstance(item, Overlong):
                head = item.text.decode("utf-8", "backslashreplace")
                lines.append((f"{head} … a line of {item.size} bytes", "note"))
        self._add(CONSOLE, lines)

    def add_steps(self, steps: Sequence[TranscriptStep]) -> None:
        """Add the AT lines of a recording, from which the secrets were taken."""
        lines = [
            (f"{step.direction.value} {text}", "")
            for step in steps
            if (text := step.data.decode("utf-8", "backslashreplace").strip("\r\n\0"))
        ]
        if lines:
            self._add(AT, lines)

    def of(self, *lanes: str) -> list[Moment]:
        """Return what is kept of some lanes, the oldest first."""
        return sorted((each for name in lanes for each in self._lanes[name]), key=_BY_NUMBER)

    def after(self, number: int) -> list[Moment]:
        """Return what came after a moment, the oldest first, as far as it is kept."""
        lanes = (
            takewhile(lambda each: each.number > number, reversed(lane))
            for lane in self._lanes.values()
        )
        return sorted(chain.from_iterable(lanes), key=_BY_NUMBER)


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - _ROOM]} … a line of {len(text)} characters"


def _size(moment: Moment) -> int:
    text = moment.text
    return MOMENT_BYTES + (len(text) if text.isascii() else len(text.encode(errors="replace")))
