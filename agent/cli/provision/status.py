"""`cellagent provision status`: the boards of the ledger, its runs, or all about one board."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from agent.cli.framework.command import ProfileCommand, agent_command, json_line, note, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import TableWriter, aligned
from agent.cli.provision.filters import filter_options, say_what_comes_next, since_option
from agent.cli.provision.profile_ledger import ledger_of
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.provisioning.ledger import BoardRecord, LedgerReader, RunRecord
    from agent.provisioning.ledger.listing import Listing, R
    from agent.provisioning.ledger.records import Record

_SHOWN = 100


@agent_command("cellagent provision status --outcome failed", ProfileCommand)
@click.argument("board", required=False)
@click.option("--runs", is_flag=True, help="The runs, one for each attempt, instead of the boards.")
@filter_options
@since_option
@click.option(
    "--limit", type=click.IntRange(1), help=f"At most so many. Default: {_SHOWN}; all with --json."
)
@click.option("--page", type=click.IntRange(1), default=1, help="The next ones: 2, 3...")
def command(
    session: Session,
    board: str | None,
    *,
    runs: bool,
    limit: int | None,
    page: int,
    **wanted: object,
) -> None:
    """List boards or runs, the last change first; or the runs and steps of one board.

    BOARD is its UUID, its device id, its IMEI or its label.

    With --json and neither --limit nor --page: all there are, by board.
    """
    from agent.provisioning.ledger import BoardRecord, RunRecord
    from agent.provisioning.ledger.listing import Listing, RecordFilter

    if board is not None and (runs or limit or page > 1 or any(wanted.values())):
        raise UsageError(
            "one board is shown whole, whatever else is asked for",
            hint="leave out the other options, or the board",
        )
    if page > 1 and limit is None:
        limit = _SHOWN
    with closing(ledger_of(session.configuration)) as ledger:
        say_none = partial(_say_why_none, ledger, session, page, filtered=any(wanted.values()))
        if board is not None:
            _board(session, ledger, _uuid_of(ledger, board))
        elif runs:
            listed = Listing(ledger, RunRecord, msgspec.convert(wanted, RecordFilter))
            _list(session, listed, limit, page, _runs, say_none)
        else:
            found = Listing(ledger, BoardRecord, msgspec.convert(wanted, RecordFilter))
            _list(session, found, limit, page, _boards, say_none)


def _list(
    session: Session,
    listing: Listing[R],
    limit: int | None,
    page: int,
    show: Callable[[Sequence[R]], None],
    say_none: Callable[[int], None],
) -> None:
    if session.json:
        _emit(listing.every() if limit is None else listing.newest(limit, page))
        return
    limit = limit or _SHOWN
    counts = listing.counts()
    number, records = sum(counts.values()), listing.newest(limit, page)
    if records:
        show(records)
    else:
        say_none(number)
    if number:
        outcomes = ", ".join(f"{count} {outcome or 'unknown'}" for outcome, count in counts.items())
        note(f"{number} in all: {outcomes}")
    if number > limit * page:
        note(f"page {page} of {-(-number // limit)}; the next: the same with --page {page + 1}")


def _say_why_none(
    ledger: LedgerReader, session: Session, page: int, number: int, *, filtered: bool
) -> None:
    if number:
        note(f"page {page} is behind the last one")
    elif filtered:
        note("nothing in the ledger is so")
        every = "fewer options; `cellagent provision status` lists all boards"
        note(f"  try: {pasteable_hint(every, '', session)}")
    else:
        note("the ledger holds none yet")
        say_what_comes_next(ledger, session)


def _emit(records: Iterable[Record]) -> None:
    """Write each record as a JSON line, as it is read."""
    from agent.provisioning.record_columns import as_json

    for record in records:
        sys.stdout.write(json_line(as_json(record)))
    sys.stdout.flush()


def _boards(records: Sequence[BoardRecord]) -> None:
    heading = "slot", "device", "outcome", "changed"
    rows = [
        (one.slot or "-", one.device_id or one.uuid, one.outcome, _minute(one.updated_at))
        for one in records
    ]
    _table(heading, rows, [_remarks(one) for one in records])


def _remarks(board: BoardRecord) -> list[str]:
    """Return what is to be said of a board in words: its last run's reason, its conflict."""
    last = f"{board.last_outcome}: " if board.last_outcome not in {"", board.outcome} else ""
    reason = last + board.reason if board.reason else ""
    conflict = f"conflict: {board.conflict}" if board.conflict else ""
    return [remark for remark in (reason, conflict) if remark]


def _runs(records: Sequence[RunRecord]) -> None:
    heading = "began", "station", "slot", "outcome", "step", "device"
    rows = [
        (
            _minute(one.began_at), one.station, one.slot or "-", one.outcome, one.step or "-",
            one.device_id or one.uuid or one.imei or one.port or "-",
        )
        for one in records
    ]  # fmt: skip
    _table(
        heading,
        rows,
        [[f"{one.reason_code}: {one.reason}"] if one.reason else [] for one in records],
    )


def _table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], remarks: Sequence[Sequence[str]]
) -> None:
    """Write rows under a heading; a remark has a line of its own, for a terminal is narrow."""
    indent = " " * (max(len(row[0]) for row in [heading, *rows]) + 2)
    for line, below in zip(aligned([heading, *rows]), [[], *remarks], strict=True):
        say(line)
        for remark in below:
            say(indent + remark)


def _uuid_of(ledger: LedgerReader, name: str) -> str:
    """Return the UUID of a board that is named by it, by its device id, IMEI or label."""
    query = "SELECT uuid FROM boards WHERE uuid = :low OR :name IN (device_id, imei, label)"
    found = [str(uuid) for (uuid,) in ledger.query(query, {"name": name, "low": name.lower()})]
    if not found:
        raise UsageError(
            f"the ledger knows no board {name}", hint="`cellagent provision status` lists them"
        )
    if len(found) > 1:
        raise UsageError(
            f"{name} is {len(found)} boards: {', '.join(sorted(found))}",
            hint="name one by its UUID",
        )
    return found[0]


def _board(session: Session, ledger: LedgerReader, uuid: str) -> None:
    board, steps, runs, keys = (
        ledger.board(uuid), ledger.steps(uuid), ledger.runs(uuid), ledger.keys(uuid)
    )  # fmt: skip
    records = [board] if board is not None else []
    if session.json:
        _emit([*records, *keys, *runs, *steps])
        return
    say(uuid)
    _boards(records)
    if runs:
        say()
        _runs(runs)
    if keys:
        say()
        table = TableWriter("tag", "made", "certificate serial", "retired", "because")
        for key in keys:
            table.add(key.security_tag, _minute(key.made_at), key.certificate_serial,
                      _minute(key.retired_at), key.retired_because)  # fmt: skip
        table.flush()
    say()
    table = TableWriter("when", "step", "state", "detail", "station")
    for one in steps:
        table.add(_second(one.at), one.step, one.state, one.detail, one.station)
    table.flush()


def _minute(when: datetime | None) -> str:
    return when.astimezone().isoformat(timespec="minutes") if when is not None else "-"


def _second(when: datetime) -> str:
    return when.astimezone().isoformat(timespec="seconds")
