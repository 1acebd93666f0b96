"""The list of forty changes names files and symbols that are there; see forty_changes.toml."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHANGES: list[dict[str, str]] = tomllib.loads(
    (ROOT / "tests" / "forty_changes.toml").read_text(encoding="utf-8")
)["changes"]


def defined(path: Path) -> set[str]:
    """Return the names that a module defines: classes, functions, methods and constants."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def test_forty_changes_are_listed_and_half_of_them_were_made_before() -> None:
    assert Counter(change["from"] for change in CHANGES) == {"changelog": 20, "made up": 20}
    assert len({change["change"] for change in CHANGES}) == 40


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change["change"][:60])
def test_a_change_begins_in_a_file_that_defines_its_symbol(change: dict[str, str]) -> None:
    assert change["symbol"] in defined(ROOT / change["file"])
