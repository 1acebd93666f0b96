"""`cellagent provision`: a table of commands, each imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent.cli.lazy import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Mapping[str, tuple[str, str]] = {
    "plan": ("provision_plan", "What would be done to each board, before anything is."),
    "run": ("provision_run", "Do it: many boards at once, each step kept in the ledger."),
    "status": ("provision_status", "What the ledger knows of every board, or of one."),
    "export": ("provision_export", "The ledger as CSV or JSON, for people and for services."),
}


@click.command(
    cls=LazyGroup,
    table=COMMANDS,
    name="provision",
    epilog="Example: cellagent provision run --all --expect 16",
)
def command() -> None:
    """Bring new kits into service: keys, certificates, registration, proof; and the ledger."""
