"""The root of the command line: a table of groups, each imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

import agent
from agent.cli.shell.command import run_command_line

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyGroup(click.Group):
    """A group over a table: name -> (module below agent.cli, one-line help)."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of the command and return its `command`."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = importlib.import_module(f"agent.cli.{entry[0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table without importing anything."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=text)
            for name, (_, text) in self.table.items()
            if name.startswith(incomplete)
        ]


# name -> (module below agent.cli, one-line help). The help stands here so that `--help` and
# completion import none of the modules.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "ports": ("ports", "Kits, their ports, which one answers AT, and why the others do not."),
    "modem": (
        "modem.group",
        "Check it, speak AT to it, decode, record, replay; the virtual modem.",
    ),
    "console": (
        "console.command",
        "The kit's logs, live; chunks and core dumps lifted out and counted.",
    ),
    "scan": ("scan", "What the radio hears: cells and Wi-Fi."),
    "locate": ("locate", "Where the kit is."),
    "assist": ("assist", "A-GNSS and P-GPS assistance data."),
    "device": ("device", "Devices at the device cloud."),
    "fota": ("fota", "The pending update of the kit: check, pull, install, report."),
    "report": (
        "delivery.report",
        "Send events, core dumps, chunks and files to the observability service.",
    ),
    "outbox": ("delivery.outbox", "What waits for delivery."),
    "observe": ("observe", "Resources of the observability service."),
    "capture": (
        "capture.command",
        "Read what a kit printed, offline: chunks, messages, core dumps.",
    ),
    "provision": ("provision.group", "Bring new kits into service; the bench and its ledger."),
    "cloud": ("cloud", "The stand-in for both services, on loopback."),
    "config": ("config", "Profiles and where each value comes from."),
    "run": ("daemon.run", "The agent: everything for one kit or many, for months."),
    "status": ("daemon.status", "What the running agent does and how its kits are."),
    "hold": ("daemon.hold", "Make the running agent let go of a kit, while a command runs."),
    "reload": ("daemon.reload", "Make the running agent read its profile again."),
    "demo": ("demo", "The agent's whole job in twenty seconds, with no kit and no account."),
    "completion": ("completion", "Shell completion for bash, zsh, fish and PowerShell."),
}


@click.command(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(agent.__version__, prog_name="cellagent")
def root() -> None:
    """Drive an nRF91 kit: its modem, position, updates, crashes and credentials.

    Start with `cellagent demo` (no kit needed) or `cellagent ports` (a kit on USB).
    """


def main() -> None:
    """Run the command line and exit with its code."""
    if os.environ.get("_CELLAGENT_COMPLETE", "").startswith("powershell"):
        importlib.import_module("agent.cli.completion")  # teaches click that shell
    sys.exit(run_command_line(root))
