"""The typed command for a command text. Importing this registers every notice, too."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import walk_packages

from at import commands
from at.protocol.command import Command, Form, read_command
from at.protocol.errors import ParseError
from at.protocol.line.answer_or_notice import ANSWERS_TO
from at.protocol.values import Value, split

_FAMILIES = [
    import_module(module.name)
    for module in walk_packages(commands.__path__, f"{commands.__name__}.")
    if module.name != __name__
]


def _types() -> Iterator[type[Command[object]]]:
    for family in _FAMILIES:
        for command_type in (*vars(family).values(), *getattr(family, "FURTHER_TYPES", ())):
            if (
                isinstance(command_type, type)
                and issubclass(command_type, Command)
                and command_type.prefix + command_type.name
            ):
                yield command_type


def _by_text(
    types: Iterable[type[Command[object]]],
) -> dict[tuple[str, Form], list[type[Command[object]]]]:
    table: dict[tuple[str, Form], list[type[Command[object]]]] = {}
    for command_type in types:
        # A SET command whose answer is OK alone has nothing to read.
        if command_type.name and not (command_type.form is Form.SET and not command_type.prefix):
            table.setdefault((command_type.name, command_type.form), []).append(command_type)
    return table


TYPES = _by_text(dict.fromkeys(_types()))


def command_of(text: str) -> Command[object] | None:
    """Return the typed command that reads the answer to this line, None if there is none."""
    parts = read_command(text)
    if parts is None:
        return None
    for command_type in TYPES.get((parts.name, parts.form), ()):
        try:
            raw = (Value(parts.arguments),)
            arguments = raw if command_type.opaque else split(parts.arguments)
        except ParseError:
            return None
        command = command_type.captured(arguments)
        if command is not None:
            return command
    return None


def readers_of(name: str) -> list[Command[object]]:
    """Return the commands whose answer lines begin with `name`, if the command is unknown."""
    name = ANSWERS_TO.get(name, name)
    commands = (
        _instance_of(command_type)
        for form in (Form.READ, Form.EXECUTE, Form.TEST, Form.SET)
        for command_type in TYPES.get((name, form), ())
        if command_type.prefix == name
    )
    return [command for command in commands if command is not None]


def _instance_of(kind: type[Command[object]]) -> Command[object] | None:
    """Return a command of a type, from the first arguments that it accepts; None if none are."""
    for arguments in ("", "1", "2", "7"):
        if (command := kind.captured(split(arguments))) is not None:
            return command
    return None
