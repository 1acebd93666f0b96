"""The root of the command line: a table of groups, each imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

import click

import agent
from agent.cli.frame import run_command_line
from agent.cli.lazy import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

# name -> (module below agent.cli, one-line help). The help stands here so that `--help` and
# completion import none of the modules.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "ports": ("ports", "Kits, their ports, which one answers AT, and why the others do not."),
    "modem": ("modem", "Check it, speak AT to it, decode, record, replay; the virtual modem."),
    "console": ("console", "The kit's logs, live; chunks and core dumps lifted out and counted."),
    "scan": ("scan", "What the radio hears: cells and Wi-Fi."),
    "locate": ("locate", "Where the kit is."),
    "assist": ("assist", "A-GNSS and P-GPS assistance data."),
    "device": ("device", "Devices at the device cloud."),
    "fota": ("fota", "The pending update of the kit: check, pull, install, report."),
    "report": ("report", "Send events, core dumps, chunks and files to the observability service."),
    "outbox": ("outbox", "What waits for delivery."),
    "observe": ("observe", "Resources of the observability service."),
    "capture": ("capture", "Read what a kit printed, offline: chunks, messages, core dumps."),
    "provision": ("provision", "Bring new kits into service; the bench and its ledger."),
    "cloud": ("cloud", "The stand-in for both services, on loopback."),
    "config": ("config", "Profiles and where each value comes from."),
    "run": ("run", "The agent: everything for one kit or many, for months."),
    "status": ("status", "What the running agent does and how its kits are."),
    "hold": ("hold", "Make the running agent let go of a kit, while a command runs."),
    "reload": ("reload", "Make the running agent read its profile again."),
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
