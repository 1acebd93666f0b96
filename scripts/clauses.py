"""Print the table of clauses and the tests that hold each, as Markdown.

A test names its clauses with `@pytest.mark.contract("D5.2")`; tests below tests/agent/standin are
the stand-in's half of a clause, all others the agent's.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"


@dataclass(slots=True)
class Held:
    """The tests of one clause, by half."""

    agent: list[str] = field(default_factory=list)
    standin: list[str] = field(default_factory=list)


def clauses() -> dict[str, str]:
    """Return every clause with its short words, in the order of the list."""
    listed = tomllib.loads((TESTS / "clauses.toml").read_text())
    return {name: words for part in "DOC" for name, words in listed[part].items()}


def single_halves() -> tuple[set[str], set[str]]:
    """Return the clauses with only an agent's half, and those with only a stand-in's."""
    listed = tomllib.loads((TESTS / "clauses.toml").read_text())
    return set(listed["only-agent"]["clauses"]), set(listed["only-standin"]["clauses"])


def tests_by_clause() -> dict[str, Held]:
    """Return the tests that carry a mark, by clause, read from their source."""
    found: dict[str, Held] = defaultdict(Held)
    for path in sorted(TESTS.rglob("test_*.py")):
        relative = path.relative_to(TESTS)
        standin = relative.parts[:2] == ("agent", "standin")
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for clause in _marks(node.decorator_list):
                held = found[clause]
                (held.standin if standin else held.agent).append(f"{relative}::{node.name}")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and _is_pytestmark(node):
                values = node.value.elts if isinstance(node.value, ast.List) else [node.value]
                for clause in _marks(values):
                    held = found[clause]
                    (held.standin if standin else held.agent).append(str(relative))
    return dict(found)


def table() -> str:
    """Return the Markdown table."""
    held = tests_by_clause()
    rows = ["| clause | in short | agent | stand-in |", "|---|---|---|---|"]
    for name, words in clauses().items():
        tests = held.get(name, Held())
        rows.append(f"| {name} | {words} | {_cell(tests.agent)} | {_cell(tests.standin)} |")
    return "\n".join(rows)


def _cell(tests: list[str]) -> str:
    names = [f"`{test.removesuffix('.py')}`" for test in tests[:3]]
    more = f" and {len(tests) - 3} more" if len(tests) > 3 else ""
    return "<br>".join(names) + more


def _marks(decorators: list[ast.expr]) -> list[str]:
    names: list[str] = []
    for decorator in decorators:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
            "mark.contract"
        ):
            names += [ast.literal_eval(argument) for argument in decorator.args]
    return names


def _is_pytestmark(node: ast.Assign) -> bool:
    return any(
        isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
    )


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
