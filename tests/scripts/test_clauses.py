"""The table of clauses is true: every mark names a clause, every clause has its tests."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "clauses.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("clauses", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_every_mark_names_a_clause(script: ModuleType) -> None:
    assert set(script.tests_by_clause()) <= set(script.clauses())


def test_every_clause_has_a_test_of_each_of_its_halves(script: ModuleType) -> None:
    held = script.tests_by_clause()
    only_agent, only_standin = script.single_halves()
    missing = []
    for clause in script.clauses():
        tests = held.get(clause, script.Held())
        if not tests.agent and clause not in only_standin:
            missing.append(f"{clause}: agent")
        if not tests.standin and clause not in only_agent and not clause.startswith("C"):
            missing.append(f"{clause}: stand-in")
    assert not missing


def test_every_clause_has_mutants_and_each_prefix_of_others_is_of_tests(script: ModuleType) -> None:
    assert set(script.noticed_mutants()) == set(script.clauses())
    tests = [
        test for held in script.tests_by_clause().values() for test in held.agent + held.standin
    ]
    assert [
        prefix for prefix in script.OTHERS if not any(t.startswith(prefix) for t in tests)
    ] == []
    table = script.table()
    alone = re.findall(r"\| (\d) of (\d)(?:, (\d) the same program)? \|", table)
    assert len(alone) == len(script.clauses())
    assert all(int(kept) + int(same or 0) == int(drawn) for kept, drawn, same in alone)
    assert "| 4 of 4 | `peers/" in table
