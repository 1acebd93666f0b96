"""`cellagent provision status`: every board of the ledger, or the steps of one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import AgentCommand, emit, options, say
from agent.cli.framework.session import configured
from agent.cli.framework.terminal import TableWriter
from agent.cli.provision.bench_options import ledger_of
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.provisioning.ledger import BoardRecord, StepRecord

_HEADING = ("slot", "device", "outcome", "changed")


@click.command(cls=AgentCommand, name="status", epilog="Example: cellagent provision status --json")
@click.argument("uuid", required=False)
def command(uuid: str | None) -> None:
    """List every board, or the steps of one."""
    with closing(ledger_of(configured(), writes=False)) as ledger:
        if uuid is None:
            _boards(ledger.boards())
        else:
            _steps(uuid, ledger.steps(uuid))


def _boards(records: Sequence[BoardRecord]) -> None:
    from agent.provisioning.exports import COLUMNS

    if options().json:
        for record in records:
            emit({column: _plain(getattr(record, column)) for column in COLUMNS})
        return
    rows = [_HEADING, *(_row(record) for record in records)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADING))]
    for row, reason in zip(rows, ["", *(record.reason for record in records)], strict=True):
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if reason:
            # A line of its own: beside a UUID a terminal has no room for a sentence.
            say(" " * (widths[0] + 2) + reason)


def _row(record: BoardRecord) -> tuple[str, ...]:
    changed = record.updated_at.astimezone() if record.updated_at is not None else None
    return (
        record.slot or "-",
        record.device_id,
        record.outcome or "-",
        f"{changed:%Y-%m-%d %H:%M}" if changed is not None else "-",
    )


def _steps(uuid: str, steps: Sequence[StepRecord]) -> None:
    if not steps:
        raise UsageError(f"the ledger knows no board {uuid}", hint="cellagent provision status")
    if options().json:
        for one in steps:
            emit(
                {"at": one.at.isoformat(), "station": one.station, "step": one.step,
                 "state": one.state, "detail": one.detail}
            )  # fmt: skip
        return
    say(uuid)
    table = TableWriter("when", "step", "state", "detail", "station")
    for one in steps:
        when = f"{one.at.astimezone():%Y-%m-%d %H:%M:%S}"
        table.add(when, one.step, one.state, one.detail, one.station)
    table.flush()


def _plain(value: object) -> object:
    return value if isinstance(value, str | int) or value is None else str(value)
