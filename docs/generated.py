"""The pages of the reference that the code itself is the source of."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import clauses

from agent.cli.main import COMMANDS, Entry
from agent.config import profile


def write_all(folder: Path) -> None:
    """Write every generated page into `folder`."""
    folder.mkdir(exist_ok=True)
    pages = {
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
