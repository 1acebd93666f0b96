"""Print the table of clauses, and what holds each of them, as Markdown."""

from __future__ import annotations

import ast
import csv
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

LEGEND = """\
A test names its clauses with `@pytest.mark.contract("D5.2")`; tests below `tests/agent/standin` are
the stand-in's half of a clause, all others the agent's. *Mutants*: how many of the spoiled lines
that were drawn for the clause a test noticed (`tests/mutants.tsv`; `scripts/mutate` finds out
anew); what is left of them is *the same program*, each with its reason in `tests/survivors.toml`.
*Others'*: tests in which a program or a test suite that is not ours agrees: a released tool, the
official suite of a language, a bootloader, a tester of documents.
"""
TESTS = Path(__file__).resolve().parent.parent / "tests"
OTHERS = (
    "peers/",
    "agent/fota/installers/test_emulated_board.py",
    "agent/standin/test_schemathesis.py",
    "agent/standin/device_cloud/devices/test_jsonata_suite.py",
)
"""What begins the names of tests that drive something of others."""
ACCEPTED = ("clause", "file", "line", "operator", "change")
"""What tells a mutant that survived for a reason."""


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


@cache
def tests_by_clause() -> dict[str, Held]:
    """Return the tests that carry a mark, by clause, read from their source."""
    found: dict[str, Held] = defaultdict(Held)
    for path in sorted(TESTS.rglob("test_*.py")):
        relative = path.relative_to(TESTS)
        standin = relative.parts[:2] == ("agent", "standin")
        source = path.read_text()
        if "mark.contract" not in source:
            continue
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for clause in _marks(node.decorator_list):
                held = found[clause]
                (held.standin if standin else held.agent).append(f"{relative}::{node.name}")
        for node in tree.body:
            if isinstance(node, ast.Assign) and _is_pytestmark(node):
                values = node.value.elts if isinstance(node.value, ast.List) else [node.value]
                for clause in _marks(values):
                    held = found[clause]
                    (held.standin if standin else held.agent).append(str(relative))
    return dict(found)


def noticed_mutants() -> dict[str, str]:
    """Return by clause how many of its mutants a test noticed: "3 of 4, 1 the same program"."""
    drawn: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    same: Counter[str] = Counter()
    reasons = tomllib.loads((TESTS / "survivors.toml").read_text())["survivor"]
    known = {tuple(row[name] for name in ACCEPTED) for row in reasons}
    with (TESTS / "mutants.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            drawn[row["clause"]] += 1
            noticed[row["clause"]] += row["verdict"] != "survived"
            same[row["clause"]] += row["verdict"] == "survived" and (
                tuple(row[name] for name in ACCEPTED) in known
            )
    return {
        clause: f"{noticed[clause]} of {count}"
        + (f", {same[clause]} the same program" if same[clause] else "")
        for clause, count in drawn.items()
    }


def table() -> str:
    """Return the Markdown table."""
    held, mutants = tests_by_clause(), noticed_mutants()
    rows = ["| clause | in short | agent | stand-in | mutants | others' |", "|---" * 6 + "|"]
    for name, words in clauses().items():
        tests = held.get(name, Held())
        both = tests.agent + tests.standin
        halves = ([test for test in half if not test.startswith(OTHERS)]
                  for half in (tests.agent, tests.standin))  # fmt: skip
        others = [test for test in both if test.startswith(OTHERS)]
        cells = [name, words, *map(_cell, halves), mutants.get(name, ""), _cell(others)]
        rows.append(f"| {' | '.join(cells)} |")
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
    print(LEGEND, table(), sep="\n")
