"""The pages of the reference that the code itself is the source of."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import clauses

from agent.cli.main import COMMANDS, Entry
from agent.config import profile
from at.causes import table


def write_all(folder: Path) -> None:
    """Write every generated page into `folder`."""
    folder.mkdir(exist_ok=True)
    pages = {
        "causes.md": causes(),
        "clauses.md": f"# Clauses and tests\n\n{clauses.table()}\n",
        "commands.md": commands(),
        "configuration.md": configuration(),
    }
    for name, text in pages.items():
        (folder / name).write_text(text)


def commands() -> str:
    """Return one section a command group, read from the command line itself."""
    parts = ["# Commands\n"]
    for name, entry in COMMANDS.items():
        where = f"{entry.module}:command" if isinstance(entry, Entry) else f"main:{name.upper()}"
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


def configuration() -> str:
    """Return the keys of a profile with their defaults and meanings, from the schema's source."""
    tree = ast.parse(inspect.getsource(profile))
    parts = ["# Keys of a profile\n", "A profile is a TOML file; every key is optional.\n"]
    sections = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    names = {
        ast.unparse(field.annotation): field.target.id
        for field in sections["Profile"].body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    for class_name, node in sections.items():
        if class_name not in names:
            continue
        parts += [f"## `[{names[class_name]}]`\n", f"{ast.get_docstring(node)}\n"]
        parts += ["| key | default | meaning |", "|---|---|---|", *_rows(node), ""]
    return "\n".join(parts)


def _rows(node: ast.ClassDef) -> list[str]:
    rows: list[str] = []
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        words = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            words = " ".join(textwrap.dedent(str(after.value.value)).split())
        default = ast.unparse(field.value) if field.value is not None else ""
        rows.append(f"| `{field.target.id}` | `{default}` | {words} |")
    return rows
