"""Draw the state machines of the code in docs/architecture.md, and hold that their tests bind them.

    scripts/states              compare the page with the code; exit code 1 if it is out of date
    scripts/states --write      draw it anew
    scripts/states --mutate [NAME ...]
                                for each row of a table, run the tests of its module without that
                                row, then with each other state in it; 1 if no test fails
    scripts/states --mutate --sample [NAME ...]
                                the same with one change of each row: what the tests do

A machine is a table at the top of a module, under a name that ends in TRANSITIONS: a `Transitions`,
or in the stand-in, which does not import `at`, a `dict[tuple[State, Event], State]`. The text below
it is shown beside the diagram. Its NAME is that of the enumeration of its states.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import sys
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import Enum

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- from here to the end: scripts/states --write -->\n"


@dataclass(frozen=True)
class Machine:
    """A table in the code: its file, the name that it has there, and what is said of it."""

    file: Path
    table: str
    words: str

    @cached_property
    def transitions(self) -> dict[tuple[Enum, Enum], Enum]:
        module = ".".join(self.file.with_suffix("").parts)
        table: dict[tuple[Enum, Enum], Enum] = getattr(importlib.import_module(module), self.table)
        return table

    @cached_property
    def states(self) -> type[Enum]:
        return type(next(iter(self.transitions))[0])

    @property
    def tests(self) -> Path:
        """The file of tests that the tree has for the table's module."""
        return Path("tests") / self.file.with_name(f"test_{self.file.name}")

    def drawn(self) -> str:
        """Return the heading and the diagram, as text that a page can show."""
        arrows: dict[tuple[Enum, Enum], list[str]] = {}
        for (state, event), after in self.transitions.items():
            arrows.setdefault((state, after), []).append(_word(event))
        left = {state for state, _ in self.transitions}
        lines = [f"[*] --> {_word(next(iter(arrows))[0])}"]
        for (state, after), events in arrows.items():
            label = "" if events == [_word(after)] else f": {', '.join(events)}"
            lines.append(f"{_word(state)} --> {_word(after)}{label}")
        reached = dict.fromkeys(after for _, after in arrows)
        lines += [f"{_word(state)} --> [*]" for state in reached if state not in left]
        diagram = "\n".join(["```mermaid", "stateDiagram-v2", *(f"    {x}" for x in lines), "```"])
        heading = f"### {self.states.__name__} (`{self.file.as_posix()}`)"
        return f"{heading}\n\n{textwrap.fill(self.words, 100)}\n\n{diagram}\n"


def machines() -> list[Machine]:
    """Return every machine of the code, in the order of their files."""
    return [
        machine
        for package in ("at", "agent")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "TRANSITIONS" in (text := path.read_text())
        for machine in _declared(path.relative_to(ROOT), ast.parse(text).body)
    ]


def page() -> str:
    """Return the page on the architecture as it should be."""
    before, begin, _ = PAGE.read_text().partition(BEGIN)
    return before + begin + "".join(f"\n{machine.drawn()}" for machine in machines())


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/states")
    parser.add_argument("--write", action="store_true", help="draw the page anew")
    parser.add_argument("--mutate", action="store_true", help="change each row: a test must fail")
    parser.add_argument("--sample", action="store_true", help="with --mutate: once for each row")
    parser.add_argument("names", nargs="*", help="with --mutate: the machines, by default all")
    chosen = parser.parse_args()
    if chosen.mutate:
        return _mutate(chosen.names, sample=chosen.sample)
    text = page()
    if chosen.write:
        PAGE.write_text(text)
    elif text != PAGE.read_text():
        print(f"{PAGE.relative_to(ROOT)} is out of date: scripts/states --write")
        return 1
    return 0


def _mutate(names: list[str], *, sample: bool) -> int:
    """Run the mutations of each machine in a process of its own: none meets another's leftovers."""
    known = {machine.states.__name__: machine for machine in machines()}
    if unknown := set(names) - set(known):
        print(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return 2
    from tests.support.harness import mutated_tables

    code = 0
    for name in names or known:
        tests, transitions = ROOT / known[name].tests, known[name].transitions
        sys.stdout.flush()
        # Of what all of them import, a fork has it already.
        if (process := os.fork()) == 0:
            summary, unnoticed = mutated_tables.run(transitions, tests, sample=sample)
            print(f"{name}: {summary}", *unnoticed, sep="\n  ", flush=True)
            os._exit(bool(unnoticed))
        code |= os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code


def _declared(file: Path, body: list[ast.stmt]) -> Iterator[Machine]:
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign):
            target, is_table = node.targets[0], "Transitions(" in ast.unparse(node.value)
        elif isinstance(node, ast.AnnAssign):
            target, is_table = node.target, "[tuple[" in ast.unparse(node.annotation)
        else:
            continue
        if is_table and isinstance(target, ast.Name) and target.id.endswith("TRANSITIONS"):
            match after:
                case ast.Expr(value=ast.Constant(value=said)):
                    words = " ".join(str(said).split())
                case _:
                    words = ""
            yield Machine(file, target.id, words)


def _word(member: Enum) -> str:
    return member.name.lower()


if __name__ == "__main__":
    environment.enter(environment.DEVELOPMENT)
    sys.path[:0] = [str(ROOT)]
    sys.exit(main())
