from __future__ import annotations

import click

from agent.cli.tree import LazyGroup, root
from tests.support.commands.command_tree import command_of, leaves


def test_each_command_has_the_name_by_which_it_is_called() -> None:
    """Manual page and reference show it: 16 commands were called "command" there."""
    assert [named for named in _names(root, click.Context(root)) if named[0] != named[1]] == []


def test_each_option_says_what_it_is_and_a_time_its_unit() -> None:
    wordless = [
        (name, option.opts)
        for name in leaves()
        for option in command_of(name).params
        if isinstance(option, click.Option) and not option.hidden
        if not option.help
        or (isinstance(option.type, click.FloatRange) and "econds" not in option.help)
    ]
    assert wordless == []


def _names(group: LazyGroup, context: click.Context) -> list[tuple[str, str | None]]:
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append((name, command.name))
        if isinstance(command, LazyGroup):
            found += _names(command, context)
    return found
