"""The root of the command line: a table of groups, each imported when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import click

import agent
from agent.cli.frame import run_command_line

if TYPE_CHECKING:
    from collections.abc import Mapping

# name -> (module below agent.cli, one-line help). The help stands here so that `--help` and
# completion import none of the modules.
COMMANDS: Mapping[str, tuple[str, str]] = {}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of the command and return its `command`."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = importlib.import_module(f"agent.cli.{entry[0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(agent.__version__, prog_name="cellagent")
def root() -> None:
    """Drive an nRF91 kit: its modem, position, updates, crashes and credentials.

    Start with `cellagent demo` (no kit needed) or `cellagent ports` (a kit on USB).
    """


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run_command_line(root))
