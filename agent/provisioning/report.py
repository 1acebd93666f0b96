"""What the bench has made: yield, first-pass yield, cycle times and failures, counted from runs.

docs/reference/ledger.md defines the words. Memory holds one board's runs, those that told no
UUID, and eight bytes for each time that was measured.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Literal

from msgspec import Struct, field

from agent.provisioning.ledger.records import INTERRUPTED, UNFINISHED, RunRecord
from agent.provisioning.planning.plan import ProvisioningStep
from agent.provisioning.record_columns import timings

Grouping = Literal["station", "lot", "slot", "hour"]
"""What the counts may be told apart by."""

_UNDECIDED = {UNFINISHED, INTERRUPTED}
_DEVIATES_95 = 1.96
"""Standard deviations around the mean in which 95 of 100 values of a normal distribution are."""
_OVER = 2.0
"""Sorts behind every yield."""


class Times(Struct):
    """Durations in seconds."""

    seconds: array[float] = field(default_factory=lambda: array("d"))

    @property
    def median(self) -> float | None:
        """Return the median; None where there are none."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def p95(self) -> float | None:
        """Return the smallest of them that is not exceeded by 95 of 100; None: there are none."""
        if not self.seconds:
            return None
        return sorted(self.seconds)[math.ceil(0.95 * len(self.seconds)) - 1]

    def to_json(self) -> dict[str, object]:
        """Return both, rounded to milliseconds."""
        return {"count": len(self.seconds), "median_s": _rounded(self.median, 3),
                "p95_s": _rounded(self.p95, 3)}  # fmt: skip


class Counts(Struct):
    """Boards and attempts of one group, or of all.

    `unfinished` boards are at work or were cut off, and count neither as passed nor as failed;
    `unidentified` attempts ended before the board told who it is.
    """

    passed: int = 0
    first_pass: int = 0
    failed: int = 0
    unfinished: int = 0
    attempts: int = 0
    unidentified: int = 0
    cycle: Times = field(default_factory=Times)

    @property
    def boards(self) -> int:
        """The boards that were tried."""
        return self.passed + self.failed + self.unfinished

    @property
    def yield_(self) -> float | None:
        """The share of the decided boards that passed; None where none is decided."""
        return self._share(self.passed)

    @property
    def first_pass_yield(self) -> float | None:
        """The share of the decided boards that passed at their first attempt."""
        return self._share(self.first_pass)

    @property
    def yield_range(self) -> tuple[float, float] | None:
        """The shares between which the yield is, 95 of 100 times (Wilson's score interval)."""
        decided, share = self.passed + self.failed, self.yield_
        if share is None:
            return None
        square = _DEVIATES_95**2 / decided
        middle = (share + square / 2) / (1 + square)
        half = math.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
        return max(0.0, middle - half), min(1.0, middle + half)

    def to_json(self) -> dict[str, object]:
        """Return the counts and shares."""
        return {
            "boards": self.boards,
            "passed": self.passed,
            "first_pass": self.first_pass,
            "failed": self.failed,
            "unfinished": self.unfinished,
            "attempts": self.attempts,
            "unidentified": self.unidentified,
            "yield": _rounded(self.yield_, 4),
            "first_pass_yield": _rounded(self.first_pass_yield, 4),
            "cycle": self.cycle.to_json(),
        }

    def _share(self, part: int) -> float | None:
        decided = self.passed + self.failed
        return part / decided if decided else None


class Failures(Struct):
    """Attempts that failed for one reason; of their `boards`, `passed_later` have passed since."""

    attempts: int = 0
    boards: int = 0
    passed_later: int = 0
    unidentified: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the counts."""
        return {"attempts": self.attempts, "boards": self.boards,
                "passed_later": self.passed_later, "unidentified": self.unidentified}  # fmt: skip


class Report(Struct):
    """Counts of all boards, by group and by reason of failure; times by step.

    `since` None means all that the ledger holds, `by` None that no groups were asked for.
    """

    since: datetime | None = None
    by: Grouping | None = None
    total: Counts = field(default_factory=Counts)
    groups: dict[str, Counts] = field(default_factory=dict)
    failures: dict[str, Failures] = field(default_factory=dict)
    steps: dict[str, Times] = field(default_factory=dict)

    def covers(self, run: RunRecord) -> bool:
        """Return whether a run is of the period."""
        return self.since is None or run.began_at >= self.since

    def sort(self) -> None:
        """Sort hours by time, other groups and failures the worst first, steps as they are done."""
        order = [step.value for step in ProvisioningStep]
        groups = sorted(self.groups.items())
        if self.by != "hour":
            groups.sort(key=lambda item: _OVER if item[1].yield_ is None else item[1].yield_)
        self.groups = dict(groups)
        self.failures = dict(
            sorted(self.failures.items(), key=lambda item: (-item[1].attempts, item[0]))
        )
        self.steps = dict(
            sorted(
                self.steps.items(),
                key=lambda item: order.index(item[0]) if item[0] in order else len(order),
            )
        )

    def to_json(self) -> dict[str, object]:
        """Return the object of `provision report --json`."""
        return {
            "since": self.since.isoformat() if self.since is not None else None,
            "by": self.by,
            "total": self.total.to_json(),
            "groups": [{"group": name, **one.to_json()} for name, one in self.groups.items()],
            "steps": [{"step": name, **times.to_json()} for name, times in self.steps.items()],
            "failures": [{"reason": name, **one.to_json()} for name, one in self.failures.items()],
        }


def report(
    runs: Iterable[RunRecord], *, since: datetime | None = None, by: Grouping | None = None
) -> Report:
    """Count the runs that began at `since` or later, each of them an attempt.

    `runs` are all there are, those before `since` too: an earlier one makes a later one a retry.
    They come by board, in the order of their changes, whoever set a clock; those without a UUID
    first.
    """
    made = Report(since, by)
    for board in _by_board(runs, partial(_add_unidentified, made)):
        _add_board(made, board)
    made.sort()
    return made


def _by_board(
    runs: Iterable[RunRecord], unidentified: Callable[[RunRecord], None]
) -> Iterator[list[RunRecord]]:
    """Yield each board's runs; those that told an IMEI alone are of the board that has it."""
    by_imei: dict[str, list[RunRecord]] = {}
    for uuid, group in groupby(runs, key=attrgetter("uuid")):
        if uuid:
            known = list(group)
            earlier = [one for imei in {one.imei for one in known} for one in by_imei.pop(imei, [])]
            yield sorted([*earlier, *known], key=attrgetter("change")) if earlier else known
            continue
        for run in group:
            if run.imei:
                by_imei.setdefault(run.imei, []).append(run)
            else:
                unidentified(run)
    for known in by_imei.values():
        yield sorted(known, key=attrgetter("change"))


def _add_board(made: Report, runs: list[RunRecord]) -> None:
    tried = [run for run in runs if not run.is_no_attempt]
    passed = next((n for n, run in enumerate(tried) if run.is_made), len(tried))
    making = tried[: passed + 1]
    _add_failures(made, tried)
    if not making or making[0].outcome == "unchanged":
        return  # it came as it should be: nothing was made
    final = making[-1] if passed < len(tried) else None
    own = [run for run in making if made.covers(run)]
    _count(made.total, own, making[0], final)
    if made.by is not None:
        for name in {_group(run, made.by): None for run in own}:
            inside = [run for run in own if _group(run, made.by) == name]
            _count(made.groups.setdefault(name, Counts()), inside, making[0], final)
    if final is not None and final in own and final.outcome == "done":
        for step, seconds in timings(final).items():
            made.steps.setdefault(step, Times()).seconds.append(seconds)


def _count(counts: Counts, own: list[RunRecord], first: RunRecord, final: RunRecord | None) -> None:
    """Count a board by its `own` attempts, those of the period and the group."""
    if not own:
        return
    counts.attempts += len(own)
    if final is not None and own[-1] is final:
        counts.passed += 1
        counts.first_pass += final is first
        if final.ended_at is not None and final.outcome == "done":
            counts.cycle.seconds.append((final.ended_at - final.began_at).total_seconds())
    elif own[-1].outcome in _UNDECIDED:
        counts.unfinished += 1
    else:
        counts.failed += 1


def _add_failures(made: Report, tried: list[RunRecord]) -> None:
    last: dict[str, int] = {}
    for number, run in enumerate(tried):
        if run.has_failed and made.covers(run):
            made.failures.setdefault(run.reason_code, Failures()).attempts += 1
            last[run.reason_code] = number
    for reason, number in last.items():
        made.failures[reason].boards += 1
        later = tried[number + 1 :]
        made.failures[reason].passed_later += any(one.is_made for one in later)


def _add_unidentified(made: Report, run: RunRecord) -> None:
    if run.is_no_attempt or run.outcome == UNFINISHED or not made.covers(run):
        return
    failures = made.failures.setdefault(run.reason_code, Failures())
    failures.attempts += 1
    failures.unidentified += 1
    made.total.unidentified += 1
    if made.by is not None:
        made.groups.setdefault(_group(run, made.by), Counts()).unidentified += 1


def _group(run: RunRecord, by: Grouping) -> str:
    """Return the group's name; "" where the run has none. Hours are those of this host."""
    if by == "hour":
        began = run.began_at.astimezone()
        return began.replace(minute=0, second=0, microsecond=0).isoformat("T", "minutes")
    if by == "slot":  # every station has an A1
        place = run.slot or run.usb_place or run.port
        return f"{run.station} {place}" if place else ""
    return run.station if by == "station" else run.lot


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded up to a perfect one."""
    if share is None:
        return "-"
    if share == 1:
        return "100 %"
    return f"{min(round(100 * share, 1), 99.9):.1f} %"


def _rounded(value: float | None, digits: int) -> float | None:
    return round(value, digits) if value is not None else None
