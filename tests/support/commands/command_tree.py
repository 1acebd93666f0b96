"""The commands of the program, by their words."""

from collections.abc import Iterator, Sequence

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


def assert_exists(where: str, words: Sequence[str]) -> None:
    """Assert that there is a command with these words, `cellagent` left out, and its options."""
    command: click.Command = root
    rest = list(words)
    while rest and isinstance(command, click.Group) and rest[0][:1].isalpha():
        found = command.get_command(click.Context(command), rest[0])
        assert found is not None, f"{where}: no command {rest[0]!r} in {words}"
        command, rest = found, rest[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    for word in rest:
        if word == "--":
            break
        if word.startswith("--"):
            assert word.partition("=")[0] in known | {"--help"}, f"{where}: {word} in {words}"
