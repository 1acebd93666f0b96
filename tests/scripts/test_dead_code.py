"""The check for dead code names what nothing uses, and no more."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "dead_code.py"


@pytest.fixture(scope="module")
def dead_code() -> ModuleType:
    pytest.importorskip("vulture", reason="needs the development environment: ./scripts/test")
    spec = importlib.util.spec_from_file_location("dead_code", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("at", "agent"):
        (tmp_path / folder).mkdir()
    (tmp_path / "at" / "one.py").write_text("def used(): ...\ndef unused(): ...\n")
    (tmp_path / "agent" / "two.py").write_text("from at.one import used\nused()\n")
    return tmp_path


def test_what_nothing_uses_is_named_with_its_line(dead_code: ModuleType, tree: Path) -> None:
    assert dead_code.findings(tree, {}) == ["at/one.py:2: nothing uses the function unused"]


@pytest.mark.parametrize("entry", ["at/one.py", "at/*", "at/one.py:unused"])
def test_what_is_allowed_is_not_named(dead_code: ModuleType, tree: Path, entry: str) -> None:
    assert dead_code.findings(tree, {entry: "for programs"}) == []


def test_an_entry_that_allows_nothing_is_named(dead_code: ModuleType, tree: Path) -> None:
    allowed = {"at/one.py": "for programs", "agent/two.py": "for programs"}
    assert dead_code.findings(tree, allowed) == ["agent/two.py: need not be allowed"]
