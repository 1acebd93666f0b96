"""The commands of the program, by their words."""

from __future__ import annotations

from collections.abc import Iterator

import click

from agent.cli.tree import root


def leaves(command: click.Command = root, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the words of each command of the tree."""
    if not isinstance(command, click.Group):
        yield " ".join(above)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*above, name))


def command_of(name: str) -> click.Command:
    """Return the command with these words."""
    command: click.Command = root
    for word in name.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return command
