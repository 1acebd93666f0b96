"""Runs the tests of a state machine's module once for each way to spoil its table of transitions.

`scripts/states --mutate` calls it. A row is removed, then each other state is put into it; at least
one test must fail each time. A row whose removal no test notices is one that no test reaches.
"""

import random
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import hypothesis
import pytest

Table = dict[tuple[Enum, Enum], Enum]


class Mutations:
    """A plugin of pytest that replaces its one run of the tests by one for each mutation."""

    def __init__(self, table: Table, *, sample: bool) -> None:
        self.table = table
        self.sample = sample
        self.rows = dict(table)
        self.unnoticed: list[str] = []
        self.count = 0
        self.broken = ""
        self._failed = False

    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.tbstyle = "native"  # nobody reads it, and any other parses the test's file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # An example fails sooner than a property.
        items = sorted(session.items, key=lambda item: hasattr(item.obj, "hypothesis"))
        for mutation in self._each():
            self.count += 1
            failing = self._first_failure(items)
            if failing is None:
                self.unnoticed.append(mutation)
            else:
                # The test that fails is likely to fail for the next mutation, too.
                items.remove(failing)
                items.insert(0, failing)
        # Last, so that it also finds what a mutation left behind.
        if not items or (failing := self._first_failure(items)):
            self.broken = f"without a mutation: {failing.nodeid if items else 'there is no test'}"
        return True

    def _first_failure(self, items: list[pytest.Item]) -> pytest.Item | None:
        for item in items:
            self._failed = False
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self._failed:
                return item
        return None

    def _each(self) -> Iterator[str]:
        """Spoil the table in one way after the other; whole again before and after each."""
        draw = random.Random(0)  # the same sample each time
        for (state, event), after in self.rows.items():
            others = [None, *(state for state in type(after) if state is not after)]
            for other in [draw.choice(others)] if self.sample else others:
                self.table.clear()
                self.table.update(self.rows)
                if other is None:
                    del self.table[state, event]
                else:
                    self.table[state, event] = other
                yield f"{state.name}, {event.name} -> {other.name if other else 'removed'}"
        self.table.clear()
        self.table.update(self.rows)


def run(table: Table, tests: Path, *, sample: bool = False) -> tuple[str, list[str]]:
    """Return the figures in one line, and the mutations that no test in `tests` notices.

    With `sample` each row is spoilt in one way, drawn with a fixed seed, and not in all.
    """
    hypothesis.settings.register_profile(
        "mutated",
        database=None,
        derandomize=True,
        max_examples=30,
        deadline=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    mutations = Mutations(table, sample=sample)
    options = ["-o", "addopts=--import-mode=importlib --hypothesis-profile=mutated --timeout=30"]
    options += ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([str(tests), *options], plugins=[mutations])
    if mutations.broken or code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return f"{tests.name} fails", [mutations.broken or f"pytest ended with {code}"]
    noticed = mutations.count - len(mutations.unnoticed)
    summary = f"{len(table)} transitions, {noticed} of {mutations.count} mutations noticed"
    return summary, [f"no test in {tests.name} notices {one}" for one in mutations.unnoticed]
