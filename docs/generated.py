"""The pages of the reference that the code itself is the source of."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import clauses
import msgspec

from agent.cli.tree import COMMANDS, Entry
from agent.config import profile
from at.causes import table


def write_all(folder: Path) -> None:
    """Write every generated page into `folder`."""
    folder.mkdir(exist_ok=True)
    pages = {
        "causes.md": causes(),
        "clauses.md": f"# Clauses and tests\n\n{clauses.LEGEND}\n\n{clauses.table()}\n",
        "commands.md": commands(),
        "configuration.md": configuration(),
    }
    for name, text in pages.items():
        (folder / name).write_text(text)


def commands() -> str:
    """Return one section a command group, read from the command line itself."""
    parts = ["# Commands\n"]
    for name, entry in COMMANDS.items():
        where = f"{entry.module}:command" if isinstance(entry, Entry) else f"tree:{name.upper()}"
        parts.append(
            f"```{{eval-rst}}\n.. click:: agent.cli.{where}\n"
            f"   :prog: cellagent {name}\n   :nested: full\n```\n"
        )
    return "\n".join(parts)


def causes() -> str:
    """Return the table of `cellagent modem why`."""
    parts = [
        "# Why a kit does not do its work\n",
        "What `cellagent modem why` holds the lines of a kit or of a log against, from",
        "`at/causes/knowledge/`. `certain` is only what the modem's own line proves. A name in the",
        "evidence is a fact: the newest field of an answer or a notice, or (`!`) the error of a",
        "command; `-` is one that was not seen.\n",
        "| cause | how sure | evidence | what it says | what to do | source |",
        "|---|---|---|---|---|---|",
    ]
    knowledge = table.load()
    for row in (*knowledge.rows, *knowledge.failures, *knowledge.alone):
        ways = "; or ".join(_conditions(wanted) for wanted in row.when)
        cells = (f"`{row.cause}`", row.certainty.value, ways, row.says, row.next, row.source)
        parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n"


def _conditions(wanted: dict[str, table.Expected]) -> str:
    """Return a set of conditions in words."""
    shown = []
    for name, expected in wanted.items():
        values = expected if isinstance(expected, list) else [expected]
        listed = f"{values[0]}, {values[1]}, …" if len(values) > 12 else ", ".join(map(str, values))
        sign = ": " if name == table.LINE else " " if listed[:1] in {"<", ">"} else " = "
        shown.append(f"`{name}{sign}{listed}`")
    return " and ".join(shown) or "any lines"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a profile as the reference shows it; its name is what `config set` takes."""

    name: str
    meaning: str
    values: str
    default: str
    example: str


def configuration() -> str:
    """Return the keys of a profile with their meanings, units and examples, from their source."""
    parts = [
        "# Keys of a profile\n",
        "A profile is a TOML file; every key is optional. `cellagent config set KEY EXAMPLE` sets",
        "one, and `cellagent config show --all` shows where each value comes from.\n",
    ]
    for section, (words, keys) in key_table().items():
        parts += [f"## `[{section}]`\n", f"{words}\n"]
        parts += ["| key | meaning | value | default | example |", "|---|---|---|---|---|"]
        for key in keys:
            shown = (f"`{text}`" if text else "" for text in (key.default, key.example))
            cells = (f"`{key.name}`", key.meaning, key.values, *shown)
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)


def key_table() -> dict[str, tuple[str, list[Key]]]:
    """Return the words and the keys of each section, by its name, as a profile has them."""
    classes = {
        node.name: node
        for node in ast.parse(inspect.getsource(profile)).body
        if isinstance(node, ast.ClassDef)
    }
    return dict(_sections(profile.Profile, classes, ""))


def _sections(
    section: type[msgspec.Struct], classes: dict[str, ast.ClassDef], prefix: str
) -> Iterator[tuple[str, tuple[str, list[Key]]]]:
    """Yield the sections below `section`, each before those below it."""
    words = _words(classes[section.__name__])
    keys: list[Key] = []
    if prefix:
        yield prefix, (inspect.getdoc(section) or "", keys)
    for field in msgspec.structs.fields(section):
        name = f"{prefix}.{field.name}".lstrip(".")
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _sections(field.type, classes, name)
        elif prefix:
            keys.append(_key(name, field, words.get(field.name, "")))


def _key(name: str, field: msgspec.structs.FieldInfo, words: str) -> Key:
    meaning, _, example = words.partition(" Example: ")
    default = field.default
    kind = msgspec.inspect.type_info(field.type)
    values = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    if isinstance(kind, msgspec.inspect.LiteralType):
        values = ", ".join(f"`{value}`" for value in kind.values if value)
        example = str(next(value for value in kind.values if value not in {"", default}))
    elif isinstance(kind, msgspec.inspect.BoolType):
        values, example = "true, false", str(not default).lower()
    elif isinstance(kind, msgspec.inspect.DictType):
        values = values or "a table"
    elif not values:
        values = "a list" if isinstance(default, tuple) else _WORDS.get(type(default), "")
    return Key(name, meaning, values, _written(default), example or _written(default))


def _written(value: object) -> str:
    """Return a value as `config set` takes it; "" where it is none."""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return f"{value:.0f}"
    return str(value).lower() if isinstance(value, str | bool | int) else ""


_UNITS = {
    "_s": "seconds", "_bytes": "bytes", "_m": "metres", "_mv": "millivolts", "_c": "°C",
    "_dbm": "dBm", "_days": "days", "baud": "bit/s",
}  # fmt: skip
_WORDS = {int: "a number", float: "a number", str: "a text"}


def _words(node: ast.ClassDef) -> dict[str, str]:
    """Return what stands below each field of a class, by the name of the field."""
    words: dict[str, str] = {}
    for field, after in pairwise(node.body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            words[field.target.id] = " ".join(str(after.value.value).split())
    return words
