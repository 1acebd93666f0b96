"""List every message that the program can print, file by file, to be read as its reader does.

A line is FILE:LINE, the kind (the name of the error, or of the function that prints), the text with
what is put in as {expression}, and what to try. An argument is the start of a path to list alone:
`scripts/messages agent/fota`.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PRINTS = {"note", "say", "say_marked", "echo"}
_LOGS = {"info", "warning", "error", "critical", "exception"}
_ERRORS = ("Error", "Refused", "Unavailable", "Failed", "Lost", "NotFound", "Busy")


@dataclass(frozen=True, slots=True)
class Message:
    """One message: where it stands (path from the root, line), its kind, its words, its hint."""

    path: str
    line: int
    kind: str
    text: str
    hint: str


def messages() -> Iterator[Message]:
    """Yield the messages of the program, by file and line."""
    for folder in ("at", "agent"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = str(file.relative_to(ROOT))
            tree = ast.parse(file.read_text())
            found = {message.line: message for message in _of_calls(tree, path)}
            yield from (found[line] for line in sorted(found))
    for file in sorted((ROOT / "at" / "causes" / "knowledge").glob("*.toml")):
        path = str(file.relative_to(ROOT))
        for number, line in enumerate(file.read_text().splitlines(), 1):
            name, equals, _ = line.partition(" = ")
            if equals and name in {"says", "next"}:
                yield Message(path, number, name, str(tomllib.loads(line)[name]), "")


def _of_calls(tree: ast.Module, path: str) -> Iterator[Message]:
    raised = {node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        kind = ast.unparse(node.func).rpartition(".")[2]
        hint = next((_text(each.value) for each in node.keywords if each.arg == "hint"), "")
        texts = [_text(value) for value in node.args]
        printed = (kind in _PRINTS and "causes" not in path) or (
            kind in _LOGS and "log" in ast.unparse(node.func)
        )
        if hint or printed or ((node in raised or kind.endswith(_ERRORS)) and any(texts)):
            yield Message(path, node.lineno, kind, " | ".join(filter(None, texts)), hint)


def _text(node: ast.expr) -> str:
    """Return the words of an expression with {…} for what is put in, "" where it holds none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = (
            _text(part) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
        return "".join(parts)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + (_text(node.right) or f"{{{ast.unparse(node.right)}}}")
    if isinstance(node, ast.IfExp):
        return " / ".join(filter(None, (_text(node.body), _text(node.orelse))))
    return f"{{{ast.unparse(node)}}}"


def main() -> None:
    """Print the list."""
    count = 0
    for message in messages():
        if message.path.startswith(tuple(sys.argv[1:]) or ""):
            count += 1
            print(f"{message.path}:{message.line}  {message.kind}: {message.text}")
            if message.hint:
                print(f"    try: {message.hint}")
    print(f"{count} messages", file=sys.stderr)


if __name__ == "__main__":
    main()
