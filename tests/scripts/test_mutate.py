"""Mutants are small and harmless, they are drawn as said, and what becomes of each is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import mutate  # noqa: E402 - its folder is no package
from mutation import trees as mutation_trees  # noqa: E402
from mutation.draw import Draw  # noqa: E402
from mutation.mutants import mutants  # noqa: E402
from mutation.trees import Measured, Tree  # noqa: E402

FILES = sorted(path for package in ("at", "agent") for path in (ROOT / package).rglob("*.py"))
DOOR = b'''"""A door."""
LIMIT = 3

def is_open(angle: int, sign: str = "open") -> bool:
    """Return whether it is open."""
    log.info("asked")
    assert angle
    if angle > 3 and not locked():
        return True
    try:
        ring(bell="front", timeout=3)
    except OSError:
        raise Shut("the door is shut")
    self.asked += 1
    os.kill(1, 9)
    say(f"/doors/{angle}")
    return False
'''
# It pauses: two of its mutants never end, and would keep a processor busy until they are stopped.
TURNING_DOOR = """
from time import sleep

def is_open(angle):
    while angle < 3:
        sleep(0.01)
        angle += 1
    return angle > 3
"""
TEST = """
import subprocess, sys
import pytest
from agent.door import is_open

@pytest.mark.contract("D1.1")
def test_it():
    assert is_open(4)

@pytest.mark.contract("D1.2", "D1.3")
def test_elsewhere():
    subprocess.run([sys.executable, "-c", "import agent.door; agent.door.is_open(2)"], check=True)
"""


def changes(source: bytes) -> list[str]:
    return [f"{one.operator}: {one.change}" for one in mutants("door.py", source)]


def test_a_line_is_spoilt_in_one_small_way_each_time() -> None:
    assert sorted(changes(DOOR)) == [
        'argument: ring(bell="front", timeout=3) -> (ring(timeout=3))',
        "boolean: angle > 3 and not locked() -> (angle > 3 or not locked())",
        "comparison: angle > 3 -> (angle >= 3)",
        "condition: angle > 3 and not locked() -> (not (angle > 3 and (not locked())))",
        "constant: 1 -> (2)",
        "constant: 3 -> (4)",
        "constant: False -> True",
        "constant: True -> False",
        'handler: raise Shut("the door is shut") -> pass',
        "return: return False -> return None",
        "return: return True -> return None",
        "sign: not locked() -> (locked())",
        'statement: raise Shut("the door is shut") -> pass',
        'statement: ring(bell="front", timeout=3) -> pass',
        'statement: say(f"/doors/{angle}") -> pass',
        "statement: self.asked += 1 -> pass",
        "text: \"front\" -> ('xfront')",
        "text: f\"/doors/{angle}\" -> (f'x/doors/{angle}')",
    ]


@given(path=st.sampled_from(FILES))
def test_each_mutant_is_whole_and_has_a_name_of_its_own(path: Path) -> None:
    source = path.read_bytes()
    found = mutants(str(path), source)
    assert len({one.name for one in found}) == len(found)
    for one in found[:: max(1, len(found) // 20)]:
        spoilt = one.applied(source)
        assert spoilt != source
        compile(spoilt, str(path), "exec")


def test_a_name_does_not_depend_on_the_place_in_the_file() -> None:
    below = [one.name for one in mutants("door.py", b"import os\n\n" + DOOR)]
    assert [one.name for one in mutants("door.py", DOOR)] == below


def measured(test: str, clauses: list[str], lines: dict[str, list[int]]) -> Measured:
    return Measured(test, clauses, "passed", 0.1, lines)


def test_a_clause_gets_mutants_of_both_halves_from_the_lines_that_are_its_own() -> None:
    agent, standin = "agent/cloud/device.py", "agent/standin/device_cloud/resource.py"
    draw = Draw(
        [
            measured("tests/test_a.py::test_all", ["D1.1", "D1.2"], {agent: [*range(200)]}),
            measured(
                "tests/agent/standin/test_b.py::test_it",
                ["D1.2"],
                {standin: [*range(200)], agent: [*range(200)]},
            ),
            measured("tests/test_a.py::test_served", ["D1.1"], {standin: [*range(200)]}),
            measured("tests/test_b.py::test_tree", ["C3"], {}),
        ],
        ROOT,
    )
    halves = [one.file.startswith("agent/standin/") for one in draw.of("D1.2")]
    assert halves == [False, False, True, True]
    assert draw.of("D1.2") != draw.of("D1.2"), "none is drawn twice"
    assert {one.operator for one in draw.of("C3")} == {"removed"}
    assert {one.file for one in draw.of("D1.1")} == {agent}, "what serves it is no half of it"


def test_no_mutant_of_lines_that_others_run_is_drawn_while_there_are_enough_of_its_own() -> None:
    file = "agent/cli/observability/resource_commands.py"
    found = mutants(file, (ROOT / file).read_bytes())
    shared = {one.statement for one in found[: len(found) // 2]}
    own = {one.statement for one in found} - shared
    draw = Draw(
        [
            measured("tests/test_a.py::test_all", ["D1.1"], {file: sorted(shared | own)}),
            measured("tests/test_a.py::test_shared", ["D1.2"], {file: sorted(shared)}),
        ],
        ROOT,
    )
    assert {one.statement for one in draw.of("D1.1")} <= own


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for name, text in {"agent/door.py": TURNING_DOOR, "tests/test_door.py": TEST}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "agent/__init__.py").touch()
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:anyio -p no:schemathesis\n"  # as in ours: half of a start
        "markers = contract(clause): x\n  peer: y\n"
    )
    return Tree(tmp_path)


def test_what_a_test_runs_is_measured_with_the_processes_that_it_starts(tree: Tree) -> None:
    first, second = tree.measure("tests/test_door.py")
    assert (first.clauses, first.outcome) == (["D1.1"], "passed")
    assert first.lines == {"agent/door.py": [5, 8]}
    assert second.clauses == ["D1.2", "D1.3"]
    assert set(second.lines["agent/door.py"]) >= {5, 6, 7}


def test_a_mutant_is_killed_or_survives_or_runs_out_of_time_and_is_taken_back(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation_trees, "_PATIENCE_S", 10)
    door = tree.folder / "agent" / "door.py"
    source = door.read_bytes()
    tests = [
        measured(f"tests/test_door.py::{name}", ["D1.1"], {})
        for name in ("test_it", "test_elsewhere")
    ]
    became = {
        (one.operator, one.change): tree.judge(one, tests)
        for one in mutants("agent/door.py", source)
    }
    assert became == {
        ("comparison", "angle < 3 -> (angle <= 3)"): ("survived", ""),
        ("condition", "angle < 3 -> (not angle < 3)"): ("timed out", tests[0].test),
        ("constant", "3 -> (4)"): ("killed", tests[0].test),
        ("statement", "sleep(0.01) -> pass"): ("survived", ""),
        ("statement", "angle += 1 -> pass"): ("timed out", tests[1].test),
        ("constant", "1 -> (2)"): ("survived", ""),
        ("return", "return angle > 3 -> return None"): ("killed", tests[0].test),
        ("comparison", "angle > 3 -> (angle >= 3)"): ("survived", ""),
    }
    assert door.read_bytes() == source


def test_a_line_keeps_what_ran_it_as_it_moves_until_it_is_changed(tree: Tree) -> None:
    measurements = mutation_trees.Measurements(tree.folder / "measured")
    door, file = tree.folder / "agent" / "door.py", "tests/test_door.py"
    (first, _) = measurements.of(file, tree)
    assert first.lines == {"agent/door.py": [5, 8]}
    door.write_text("import os\n" + TURNING_DOOR.replace("while angle < 3", "while angle < 2"))
    (first, _) = measurements.of(file, tree)
    assert first.lines == {"agent/door.py": [9]}
    (tree.folder / file).write_text(TEST + "\n")
    (first, _) = measurements.of(file, tree)
    assert first.lines == {"agent/door.py": [6, 9]}


def test_a_survivor_is_tried_again_once_its_tests_are_others(tmp_path: Path) -> None:
    one = mutants("agent/door.py", DOOR)[0]
    results = mutate.Results(tmp_path / "results.jsonl", ROOT)
    results.add("D1.1", one, [], "survived", "")
    results.add("D1.2", one, [], "killed", "tests/scripts/test_states.py::test_x")
    later = mutate.Results(tmp_path / "results.jsonl", ROOT)
    tests = [measured("tests/scripts/test_states.py::test_x", ["D1.1"], {})]
    assert later.get("D1.1", one, []) is not None
    assert later.get("D1.1", one, tests) is None
    assert later.get("D1.2", one, tests) is not None


def test_each_survivor_that_is_accepted_is_of_the_code_and_has_a_reason() -> None:
    assert mutate._stale() == []
    assert all(row["reason"] for row in mutate._accepted())


def test_the_short_form_looks_for_mutants_in_python_alone() -> None:
    assert mutate._mutants_of("README.md") == []
    assert mutate._mutants_of("no/such/file.py") == []
    assert mutate._mutants_of("at/protocol/errors.py")
