"""A plugin of pytest that notes what became of each test, one line of JSON each."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_notes = Path(os.environ["MUTATION_NOTES"])
# What a test starts is measured, too, under the name of the test that runs at that moment.
if (settings := Path(os.environ["MUTATION_COVERAGE"])).is_file():
    os.environ["COVERAGE_PROCESS_START"] = str(settings)
_MEMORY = 6 << 30  # bytes that a process may take: a spoilt loop must not take the machine's
resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def pytest_itemcollected(item: pytest.Item) -> None:
    clauses = sorted({clause for mark in item.iter_markers("contract") for clause in mark.args})
    item.user_properties.append(("clauses", clauses))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.passed:
        return
    row = {
        "test": report.nodeid,
        "clauses": dict(report.user_properties).get("clauses", []),
        "outcome": "timed out" if "Timeout (>" in report.longreprtext else report.outcome,
        "seconds": report.duration,
    }
    with _notes.open("a") as notes:
        notes.write(json.dumps(row) + "\n")
