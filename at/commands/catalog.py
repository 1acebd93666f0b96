"""The typed command for a command text. Importing this registers every notice, too."""

from collections.abc import Iterator
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
        for kind in (*vars(family).values(), *getattr(family, "FURTHER_TYPES", ())):
            if (
                isinstance(kind, type)
                and issubclass(kind, Command)
                and kind.name
                # A SET command whose answer is OK alone has nothing to read.
                and (kind.prefix or kind.form is not Form.SET)
            ):
                yield kind


TYPES: dict[tuple[str, Form], list[type[Command[object]]]] = {}
"""Name and form of a command line -> its types, each of another first parameter."""
for _kind in dict.fromkeys(_types()):  # a family has those that it imports, too
    TYPES.setdefault((_kind.name, _kind.form), []).append(_kind)


def command_of(text: str) -> Command[object] | None:
    """Return the typed command that reads the answer to this line, None if there is none."""
    parts = read_command(text)
    if parts is None:
        return None
    for kind in TYPES.get((parts.name, parts.form), ()):
        try:
            arguments = (Value(parts.arguments),) if kind.opaque else split(parts.arguments)
        except ParseError:
            return None
        if (command := kind.captured(arguments)) is not None:
            return command
    return None


def readers_of(name: str) -> list[Command[object]]:
    """Return the commands whose answer lines begin with `name`, if the command is unknown."""
    name = ANSWERS_TO.get(name, name)
    return [
        kind.reader()
        for form in (Form.READ, Form.EXECUTE, Form.TEST, Form.SET)
        for kind in TYPES.get((name, form), ())
        if kind.prefix == name
    ]
