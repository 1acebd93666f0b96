"""`cellagent provision report`: yield, cycle times and failures, for who answers for the line."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Literal, get_args

import click

from agent.cli.framework.command import ProfileCommand, agent_command, emit, note, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.safe_text import printable
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import aligned, bar
from agent.cli.provision.filters import say_what_comes_next, since_option
from agent.cli.provision.profile_ledger import ledger_of
from at.protocol.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent.provisioning.report import Counts, Failures, Report, Times

_COUNTS = "boards", "passed", "yield", "first pass", "attempts", "median", "p95"
_LONGEST_NAME = 32
By = Literal["station", "lot", "slot", "reason", "hour"]


@agent_command("cellagent provision report --since 8h --by slot", ProfileCommand)
@since_option
@click.option(
    "--by",
    type=click.Choice(get_args(By)),
    help="Count each of them by itself; reason: the failures alone.",
)
def command(session: Session, since: datetime | None, by: By | None) -> None:
    """Tell how many boards passed, at the first attempt or later, how long it took, what failed.

    A board counts once: until its first `done`. Attempts that found it busy do not count.
    """
    from agent.provisioning.ledger import RunRecord
    from agent.provisioning.ledger.listing import Listing, RecordFilter
    from agent.provisioning.report import report

    with closing(ledger_of(session.configuration)) as ledger:
        runs = Listing(ledger, RunRecord, RecordFilter()).every()
        made = report(runs, since=since, by=by if by != "reason" else None)
    if session.json:
        emit(made.to_json() | {"by": by})
    elif made.total.boards or made.failures:
        _show(made, session, failures_alone=by == "reason")
    elif since is not None:
        note(f"no run is recorded since {_time(since)}")
        note("  try: an earlier --since")
    else:
        note("no run is recorded yet")
        say_what_comes_next(ledger, session)


def _show(made: Report, session: Session, *, failures_alone: bool) -> None:
    if not failures_alone:
        say(f"since {_time(made.since)}" if made.since is not None else "all that the ledger holds")
        rows = [("all", made.total), *made.groups.items()]
        _table((made.by or "", *_COUNTS), [(name or "(none)", *_cells(one)) for name, one in rows])
        _show_steps(made.steps)
    if made.failures:
        say()
        _show_failures(made.failures)
    elif failures_alone:
        say("no attempt failed")
    if not failures_alone:
        _show_uncounted(made.total, session)


def _show_uncounted(total: Counts, session: Session) -> None:
    if total.unfinished or total.unidentified:
        say()
    if total.unfinished:
        say(f"{counted(total.unfinished, 'boards')} at work, or cut off; not in the yield")
    if total.unidentified:
        ended = f"{counted(total.unidentified, 'attempts')} ended before the board told who it is"
        listed = pasteable_hint("`cellagent provision status --runs`", "", session)
        say(f"{ended}; not in the yield: {listed}")


def _show_failures(failures: dict[str, Failures]) -> None:
    most = max(one.attempts for one in failures.values())
    rows = [
        (name, str(one.attempts), str(one.boards), str(one.passed_later), _bar(one.attempts, most))
        for name, one in failures.items()
    ]
    _table(("failed for", "attempts", "boards", "passed later", ""), rows)


def _show_steps(steps: dict[str, Times]) -> None:
    if not steps:
        return
    say()
    longest = max(times.median or 0.0 for times in steps.values())
    rows = [
        (name, _seconds(times.median), _seconds(times.p95), _bar(times.median, longest))
        for name, times in steps.items()
    ]
    _table(("step", "median", "p95", ""), rows)


def _cells(counts: Counts) -> tuple[str, ...]:
    from agent.provisioning.report import percent

    return (
        str(counts.boards), str(counts.passed), percent(counts.yield_),
        percent(counts.first_pass_yield), str(counts.attempts),
        _seconds(counts.cycle.median), _seconds(counts.cycle.p95),
    )  # fmt: skip


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under a heading: the first column and bars to the left, numbers to the right."""
    lines = [heading, *([_short(printable(name)), *cells] for name, *cells in rows)]
    numbers = {column for column, name in enumerate(heading) if column and name}
    for line in aligned(lines, right=numbers):
        say(line)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _bar(value: float | None, most: float) -> str:
    return bar(value, 0.0, most) if most > 0 else ""


def _seconds(value: float | None) -> str:
    return f"{value:.1f} s" if value is not None else "-"


def _time(when: datetime) -> str:
    return when.astimezone().isoformat(timespec="minutes")
