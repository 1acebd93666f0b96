"""What a concern's phase and facts mean for a person: one table, and the headline that it gives.

The rows stand in the order of their weight; the first that holds gives state, words and way out.
A new state of affairs is a row here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten

from agent.daemon.snapshot import ConcernStatus, Crash, Finding, Headline, KitStatus, Phase, State
from at.protocol.counts import counted

RECENT_S = 3600.0
"""For so long a crash asks for attention."""
_LONGEST = 120  # characters of a text in the headline; the concern has all of it
_FACT = re.compile(r"\{(\w+)\}")
_ORDER = list(State)
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Row:
    """One state of affairs: `fact` is known, and begins with `value`."""

    state: State
    fact: str
    value: str = ""
    says: str = "{trouble}"
    """In which {name} stands for a fact."""


TABLE = (
    Row(State.TROUBLE, "phase", Phase.TROUBLE),
    Row(State.ATTENTION, "findings", says="{findings}"),
    Row(State.ATTENTION, "cause", says="{cause}"),
    Row(State.ATTENTION, "unreported", says="its position is not reported: {unreported}"),
    Row(State.ATTENTION, "crash", says="the kit crashed: {crash}"),
    Row(State.ATTENTION, "lost", says="{lost} were lost for want of room"),
    Row(State.ATTENTION, "parked", says="{parked} are parked: the service refuses them"),
    Row(State.ATTENTION, "hint"),  # it is off, and not by choice
    Row(State.UNKNOWN, "held_by", says="held by {held_by}"),
    Row(State.UNKNOWN, "busy_with", "lent", says="{busy_with}"),
    Row(State.UNKNOWN, "phase", Phase.WAITING, says="it waits for {trouble}"),
    Row(State.WORKING, "busy_with", says="{busy_with}"),
    Row(State.WORKING, "stage", says="{stage}"),
    Row(State.WORKING, "phase", Phase.STARTING, says="it is starting"),
    Row(State.WELL, "phase", says="well"),
)
"""Of a concern that is off by choice nothing is wanted: it is well."""


def row_of(status: ConcernStatus, now: datetime) -> Row:
    """Return the row that holds for a concern."""
    return next(row for row in TABLE if _holds(row, status, now))


def worst(states: Iterable[State]) -> State:
    """Return the worst of some states; WELL of none."""
    return min(states, key=_ORDER.index, default=State.WELL)


def headline(shared: Sequence[ConcernStatus], kits: Sequence[KitStatus], now: datetime) -> Headline:
    """Return the worst of all concerns in a sentence: by the table, then the longest."""
    count = counted(len(kits), "kits")
    found = [("", each) for each in shared]
    found += [(kit.name, each) for kit in kits for each in kit.concerns]
    state = worst(each.state for _, each in found)
    if state is State.WELL:
        return Headline(state, f"{count}, all is well")
    kit, concern = min(
        (pair for pair in found if pair[1].state is state),
        # Without its link nothing of a kit works.
        key=lambda pair: (TABLE.index(row_of(pair[1], now)), pair[1].name != "link", pair[1].since),
    )
    found_so = meaning(concern, now)
    alike = sum(each.state is state for each in kits)
    share = f"{alike} of {count} {_IN[state]}; " if alike else ""
    about = f"{kit}: {concern.name}" if kit else concern.name
    return Headline(
        state,
        f"{share}{about}: {shorten(found_so.what, _LONGEST, placeholder=' …')}",
        found_so.hint,
        kit,
        concern.name,
    )


def meaning(status: ConcernStatus, now: datetime) -> Finding:
    """Return what a concern's state rests on, in words, and what to try."""
    row = row_of(status, now)
    return Finding(_text(row, status), _way_out(row, status))


def duration(seconds: float) -> str:
    """Return a duration in the largest unit of which there are two or more."""
    seconds = max(0.0, seconds)  # the clock may have been set back
    unit, size = next((each for each in _UNITS if seconds >= 2 * each[1]), _UNITS[-1])
    return f"{seconds / size:.0f} {unit}"


_IN = {
    State.TROUBLE: "in trouble",
    State.ATTENTION: "to look at",
    State.UNKNOWN: "not heard",
    State.WORKING: "at work",
}


def _holds(row: Row, status: ConcernStatus, now: datetime) -> bool:
    fact: object = getattr(status, row.fact, None)
    if isinstance(fact, Crash):
        return abs((now - fact.at).total_seconds()) < RECENT_S
    return bool(fact) and str(fact).startswith(row.value)


def _text(row: Row, status: ConcernStatus) -> str:
    return _FACT.sub(lambda match: _shown(getattr(status, match[1], None)), row.says)


def _shown(fact: object) -> str:
    if isinstance(fact, list):
        return "; ".join(each.what for each in _findings(fact))
    if isinstance(fact, Crash):
        return fact.what
    return str(getattr(fact, "says", fact))


def _way_out(row: Row, status: ConcernStatus) -> str | None:
    fact: object = getattr(status, row.fact, None)
    if isinstance(fact, list):
        return next((each.hint for each in _findings(fact)), None)
    step: object = getattr(fact, "next", getattr(status, f"{row.fact}_hint", status.hint))
    return str(step) if step else None


def _findings(fact: list[object]) -> Iterator[Finding]:
    return (each for each in fact if isinstance(each, Finding))
