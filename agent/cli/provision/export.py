"""`cellagent provision export`: the boards of the ledger as CSV or JSON."""

from __future__ import annotations

import sys
from contextlib import closing

import click

from agent.cli.framework.command import AgentCommand, emit
from agent.cli.framework.session import configured
from agent.cli.provision.bench_options import ledger_of


@click.command(
    cls=AgentCommand,
    name="export",
    epilog="Example: cellagent provision export --as csv > tray.csv",
)
@click.option(
    "--as", "form", type=click.Choice(["csv", "bulk", "nordic", "json"]), default="csv",
    show_default=True, help="csv for a spreadsheet, bulk for OnboardDevices, nordic for its tools.",
)  # fmt: skip
@click.option("--outcome", help="Only boards that ended so, such as done.")
def command(form: str, outcome: str | None) -> None:
    """Write the boards of the ledger to standard output."""
    from agent.provisioning import exports

    settings = configured()
    with closing(ledger_of(settings, writes=False)) as ledger:
        records = [
            record for record in ledger.boards() if outcome is None or record.outcome == outcome
        ]
    section = settings.profile.provisioning
    if form == "json":
        for record in records:
            emit({column: str(getattr(record, column) or "") for column in exports.COLUMNS})
        return
    if form == "bulk":
        text = exports.for_bulk_onboarding(
            records,
            sub_type=section.sub_type,
            tags=section.tags,
            firmware_types=section.firmware_types,
        )
    elif form == "nordic":
        text = exports.for_nordic_tools(records)
    else:
        text = exports.for_spreadsheet(records)
    sys.stdout.write(text)
