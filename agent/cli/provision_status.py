"""`cellagent provision status`: what the ledger knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from agent.cli.bench_settings import configuration, ledger_of
from agent.cli.frame import AgentCommand, emit, options, say
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.provisioning.ledger import BoardRecord, StepRecord


@click.command(cls=AgentCommand, name="status", epilog="Example: cellagent provision status --json")
@click.argument("uuid", required=False)
def command(uuid: str | None) -> None:
    """List every board, or the steps of one."""
    ledger = ledger_of(configuration(), writes=False)
    try:
        if uuid is None:
            _boards(ledger.boards())
        else:
            _steps(uuid, ledger.steps(uuid))
    finally:
        ledger.close()


def _boards(records: Sequence[BoardRecord]) -> None:
    from agent.cli.table import TableWriter
    from agent.provisioning.tables import COLUMNS

    if options().json:
        for record in records:
            emit({column: _plain(getattr(record, column)) for column in COLUMNS})
        return
    table = TableWriter("device", "slot", "outcome", "reason", "writes", "changed")
    for record in records:
        table.add(
            record.device_id, record.slot, record.outcome, record.reason, record.writes,
            record.updated_at,
        )  # fmt: skip
    table.flush()


def _steps(uuid: str, steps: Sequence[StepRecord]) -> None:
    from agent.cli.table import TableWriter

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
        table.add(one.at, one.step, one.state, one.detail, one.station)
    table.flush()


def _plain(value: object) -> object:
    return value if isinstance(value, str | int) or value is None else str(value)
