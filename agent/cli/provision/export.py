"""`cellagent provision export`: the boards of the ledger or its changes, as CSV or JSON."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click
import msgspec

from agent.cli.framework.command import ProfileCommand, agent_command, json_line, note
from agent.cli.framework.session import Session
from agent.cli.provision.filters import filter_options
from agent.cli.provision.profile_ledger import ledger_of
from agent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.config.load import Configuration
    from agent.provisioning.ledger import BoardRecord, LedgerReader


def _cursor(text: str) -> int:
    """Return the number of a change."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise click.BadParameter(
            f"{text!r} is no cursor: write the number that the last such export ended with, "
            "or 0 for all there is (`provision status --since TIME` knows times)"
        )
    return int(text)


@agent_command("cellagent provision export --as csv > tray.csv", ProfileCommand)
@click.option(
    "--as", "form", type=click.Choice(["csv", "bulk", "nordic", "json"]),
    help="csv (the default) for a spreadsheet, bulk for OnboardDevices, nordic for its tools.",
)  # fmt: skip
@filter_options
@click.option(
    "--since",
    "cursor",
    type=_cursor,
    metavar="CURSOR",
    help="As JSON, every change of boards, keys, runs and steps after the one that the last such "
    "export ended with; 0: all there are.",
)
def command(session: Session, form: str | None, cursor: int | None, **wanted: object) -> None:
    """Write the boards of the ledger, or its changes, to standard output.

    The last line of `--since` is {"cursor": N}: give N to the next `--since`. Whoever was stopped
    half-way gives the `change` of the last line that it has kept.
    """
    from agent.provisioning.ledger import BoardRecord
    from agent.provisioning.ledger.listing import Listing, RecordFilter

    if session.json and form not in {None, "json"}:
        raise UsageError(f"--as {form} is no JSON", hint="leave --json out, or --as")
    form = form or ("json" if session.json or cursor is not None else "csv")
    settings = session.configuration
    with closing(ledger_of(settings)) as ledger:
        if cursor is not None:
            if form != "json" or any(wanted.values()):
                raise UsageError(
                    "--since gives every change as JSON",
                    hint=f"`cellagent provision export --since {cursor}`",
                )
            lines = _changes(ledger, cursor)
        else:
            lines = _boards(
                form,
                Listing(ledger, BoardRecord, msgspec.convert(wanted, RecordFilter)).every(),
                settings,
            )
        rows = 0
        for line in lines:
            sys.stdout.write(line)
            rows += 1
        sys.stdout.flush()
    if form == "bulk":
        _check_rows(rows)


def _check_rows(rows: int) -> None:
    from agent.cloud.public_keys import MOST_ROWS  # and with it all that speaks HTTP

    if rows > MOST_ROWS:
        note(
            f"{rows:,} rows: the service takes {MOST_ROWS:,} of them at a time; --lot, --station "
            "and --outcome choose some"
        )


def _changes(ledger: LedgerReader, cursor: int) -> Iterator[str]:
    from agent.provisioning.ledger import LedgerError
    from agent.provisioning.record_columns import as_json

    if ledger.older:
        raise LedgerError(
            f"this ledger does not number its changes yet (schema {ledger.older})",
            hint="`cellagent provision migrate` brings it up to date; `export --as json` gives "
            "the boards as they are",
        )
    newest = ledger.newest_change()
    if cursor > newest:
        raise UsageError(
            f"--since {cursor}: this ledger's last change is {newest}, so the cursor is another "
            "ledger's, or this one was put back from a copy",
            hint="`--since 0` gives everything again",
        )
    for record in ledger.changes(cursor):
        cursor = record.change
        yield json_line(as_json(record))
    yield json_line({"cursor": cursor})


def _boards(form: str, records: Iterable[BoardRecord], settings: Configuration) -> Iterator[str]:
    from agent.provisioning import exports
    from agent.provisioning.record_columns import as_json

    section = settings.profile.provisioning
    if form == "json":
        return (json_line(as_json(record)) for record in records)
    if form == "bulk":
        return exports.for_bulk_onboarding(
            _without_doubles(records),
            sub_type=section.sub_type,
            tags=section.tags,
            firmware_types=section.firmware_types,
        )
    if form == "nordic":
        return exports.for_nordic_tools(records)
    return exports.for_spreadsheet(records)


def _without_doubles(records: Iterable[BoardRecord]) -> Iterator[BoardRecord]:
    """Yield the boards that have their device id alone, and name the others.

    The service would take the key of one for the device, and end that of the other.
    """
    for record in records:
        if record.conflict and record.public_key:
            note(f"left out: board {record.uuid}: {record.conflict}")
        else:
            yield record
