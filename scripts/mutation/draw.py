"""Which mutants are tried for each clause, and which tests judge them.

From the lines that the tests of a clause run some are drawn: as many of the stand-in's half as of
the agent's, each half being its code as its own tests run it; and from the lines nearest to the
clause, those that a test of it runs with few others, and the tests of few other clauses run. What a
test of the whole only passes by is left to the clauses that are about it. A draw depends on SEED
and the text of a line, so that a change elsewhere leaves it alone.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from functools import cached_property
from itertools import accumulate, zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING

from mutation.mutants import Mutant, mutants
from mutation.trees import Measured

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED = 20261122
PER_CLAUSE = 4
_NEIGHBOURS_S = 60  # of testing that one mutant is worth
_EACH_S = 0.5  # what a test costs beside its own time
_POOL = 40  # mutants of a half from which a clause's are drawn
_ENTRIES = ("README.md", "docs", "fixtures", "scripts")  # what pytest itself can do without


class Draw:
    """The mutants of each clause, and the tests that judge each."""

    def __init__(self, measured: list[Measured], root: Path) -> None:
        self.root = root  # of the tree that was measured
        self.tests = [test for test in measured if test.outcome == "passed"]
        self._mutants: dict[str, list[Mutant]] = {}
        self._taken: set[str] = set()

    @cached_property
    def covering(self) -> dict[tuple[str, int], dict[str, list[Measured]]]:
        """The tests that run a line, by clause."""
        found: dict[tuple[str, int], dict[str, list[Measured]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for test in self.tests:
            for file, lines in test.lines.items():
                for line in lines:
                    for clause in test.clauses:
                        found[file, line][clause].append(test)
        return found

    def of(self, clause: str) -> list[Mutant]:
        """Return what is drawn for a clause; to be called in the order of the clauses."""
        halves = [self._candidates(clause, standin=standin) for standin in (False, True)]
        if not any(halves):
            return [Mutant(name, "", "", "removed", "", 0, 0, 0, 0, "") for name in _ENTRIES]
        chosen: list[Mutant] = []
        for count, half in zip((PER_CLAUSE // 2, PER_CLAUSE), halves, strict=True):
            chosen += self._chosen(clause, half, count - len(chosen), chosen)
        chosen += self._chosen(clause, halves[0], PER_CLAUSE - len(chosen), chosen)
        self._taken |= {one.name for one in chosen}
        return chosen

    def _candidates(self, clause: str, *, standin: bool) -> list[Mutant]:
        """Return the mutants of a half of a clause: of its code, run by the tests of that half."""
        lines = {
            (file, line)
            for (file, line), tests in self.covering.items()
            if file.startswith("agent/standin/") is standin
            and any(_is_standin_s(one) is standin for one in tests.get(clause, ()))
        }
        return [
            one
            for file in sorted({file for file, _ in lines})
            for one in self._of_file(file)
            if (file, one.statement) in lines and one.name not in self._taken
        ]

    def judges(self, clause: str, mutant: Mutant) -> list[Measured]:
        if mutant.operator == "removed":
            return [test for test in self.tests if clause in test.clauses]
        return self.covering[mutant.file, mutant.statement][clause]

    def neighbours(self, clause: str, mutant: Mutant) -> list[Measured]:
        """Return tests of other clauses that run a statement, and those of the file itself."""
        tests = self.covering[mutant.file, mutant.statement]
        own = {test.test for test in tests[clause]}
        by_clause = [sorted(tests[name], key=lambda test: test.breadth) for name in tests]
        in_turn = (test for row in zip_longest(*by_clause) for test in row if test is not None)
        others = list({test.test: test for test in in_turn if test.test not in own}.values())
        taken = accumulate(test.seconds + _EACH_S for test in others)
        near = [test for test, total in zip(others, taken, strict=True) if total < _NEIGHBOURS_S]
        path = PurePath(mutant.file)
        own_file = str(PurePath("tests", path.parent, f"test_{path.name}"))
        if (self.root / own_file).is_file():
            near.append(Measured(own_file, [], "passed", _NEIGHBOURS_S))
        return near

    def _distance(self, clause: str, mutant: Mutant) -> int:
        """Return how far a line is from being what the tests of a clause are about.

        A test that runs little else is about it; one that many clauses' tests run is about none.
        """
        tests = self.covering[mutant.file, mutant.statement]
        return len(tests) ** 2 * min(test.breadth for test in tests[clause])

    def _of_file(self, file: str) -> list[Mutant]:
        if file not in self._mutants:
            self._mutants[file] = mutants(file, (self.root / file).read_bytes())
        return self._mutants[file]

    def _chosen(
        self, clause: str, half: list[Mutant], count: int, before: list[Mutant]
    ) -> list[Mutant]:
        half = [one for one in half if one not in before]
        far = {one.name: self._distance(clause, one) for one in half}
        bound = sorted(far.values())[:_POOL][-1] if half else 0
        pool = [one for one in half if far[one.name] <= bound]
        pool.sort(key=lambda one: rank(clause, one.name))
        chosen: list[Mutant] = []
        ways: tuple[Callable[[Mutant, list[Mutant]], bool], ...] = (
            lambda one, all_: (
                not any(
                    one.function == other.function or one.operator == other.operator
                    for other in all_
                )
            ),
            lambda one, all_: not any(one.function == other.function for other in all_),
            lambda one, all_: one not in all_,
        )
        for is_new in ways:
            for one in pool:
                if len(chosen) < count and is_new(one, [*before, *chosen]):
                    chosen.append(one)
        return chosen


def _is_standin_s(test: Measured) -> bool:
    return test.test.startswith("tests/agent/standin/")


def rank(*words: str) -> str:
    """Return the place of a mutant in a draw: by SEED, the same each time."""
    return hashlib.sha256(" ".join([str(SEED), *words]).encode()).hexdigest()
