"""The options that choose boards or runs of the ledger, `--since TIME` among them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import note, together
from agent.cli.framework.hints import pasteable_hint

if TYPE_CHECKING:
    from agent.cli.framework.session import Session
    from agent.provisioning.ledger import LedgerReader

_AGO = re.compile(r"(\d{1,6})(m|h|d|w)")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FIRST_YEAR = 2000


def since(text: str) -> datetime:
    """Return the aware time that `text` names at this moment. Raises click.BadParameter."""
    try:
        return moment(text, datetime.now(UTC))
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{text!r} is no time: write 2026-03-31, 2026-03-31T06:00, "
            "2026-03-31T06:00+02:00, or 8h, 7d (ago)"
        ) from error


def moment(text: str, now: datetime) -> datetime:
    """Return a time with its zone, or without one in this host's; a day; or 30m, 8h, 7d, 2w ago.

    Raises ValueError, OverflowError.
    """
    if ago := _AGO.fullmatch(text):
        found = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    else:
        found = datetime.fromisoformat(text).astimezone(UTC)
    if found.year < _FIRST_YEAR:
        raise ValueError(f"{text} is before the year {_FIRST_YEAR}")
    return found


since_option = click.option(
    "--since", type=since, metavar="TIME", help="From this time on: 2026-03-31, 8h, 7d."
)
OUTCOMES = (
    *("done", "unchanged", "refused", "failed", "busy", "swapped"),
    *("unfinished", "interrupted"),
)
filter_options = together(
    click.option(
        "--outcome",
        metavar="NAME",
        type=click.Choice(OUTCOMES),
        help="That ended so: done, refused, failed...",
    ),
    click.option("--station", metavar="NAME", help="Of this station."),
    click.option("--lot", metavar="NAME", help="Of this lot."),
    click.option("--reason", metavar="CODE", help="With this reason code, as `report` lists them."),
)
"""Choose boards, or runs, by what they are; see `RecordFilter`."""


def say_what_comes_next(ledger: LedgerReader, session: Session) -> None:
    """Say how a ledger without runs, or boards, gets some."""
    if ledger.older:
        note(
            f"  its tables (version {ledger.older}) kept no runs; boards are in `provision status`"
        )
    step = "`cellagent provision migrate`" if ledger.older else "`cellagent provision run --all`"
    note(f"  next: {pasteable_hint(step, '', session)}")
