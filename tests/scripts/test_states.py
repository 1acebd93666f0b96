"""The state machines are drawn as they are, and each row of their tables is held by a test."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import states  # noqa: E402 - its folder is no package

DOOR = """
from enum import Enum

class Door(Enum):
    OPEN, CLOSED, LOCKED = range(3)

class Act(Enum):
    CLOSE, LOCK, TURN = range(3)

TRANSITIONS = {
    (Door.OPEN, Act.CLOSE): Door.CLOSED,
    (Door.CLOSED, Act.LOCK): Door.LOCKED,
    (Door.CLOSED, Act.TURN): Door.LOCKED,
}
"""
TEST = """
import door

def test_it():
    assert door.TRANSITIONS[door.Door.OPEN, door.Act.CLOSE] is door.Door.CLOSED
    assert (door.Door.CLOSED, door.Act.LOCK) in door.TRANSITIONS
"""


def test_the_page_shows_each_machine_as_it_is_in_the_code() -> None:
    assert states.page() == states.PAGE.read_text(), "out of date: scripts/states --write"


@pytest.mark.timeout(600)
def test_no_row_of_a_table_can_be_changed_unnoticed() -> None:
    command = [sys.executable, ROOT / "scripts" / "states.py", "--mutate", "--sample"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    tried = [line.partition(":")[0] for line in ran.stdout.splitlines()]
    assert tried == [machine.states.__name__ for machine in states.machines()]


def test_a_table_is_found_by_its_name_with_what_is_said_of_it() -> None:
    source = '''
TRANSITIONS = Transitions({(Door.OPEN, Act.CLOSE): Door.CLOSED})
"""How a door
moves."""
UPLOAD_TRANSITIONS: dict[tuple[State, Event], State] = {}
FORMER_TRANSITIONS: dict[str, frozenset[str]] = {}
DOORS = Transitions({})
'''
    found = states._declared(Path("at/door.py"), ast.parse(source).body)
    assert [(one.table, one.words) for one in found] == [
        ("TRANSITIONS", "How a door moves."),
        ("UPLOAD_TRANSITIONS", ""),
    ]
    assert states.Machine(Path("at/door.py"), "TRANSITIONS", "").tests == Path(
        "tests/at/test_door.py"
    )


def test_a_diagram_names_what_leads_from_state_to_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "door.py").write_text(DOOR)
    monkeypatch.syspath_prepend(tmp_path)
    drawn = states.Machine(Path("door.py"), "TRANSITIONS", "How a door moves.").drawn()
    assert drawn.splitlines() == [
        "### Door (`door.py`)",
        "",
        "How a door moves.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> open",
        "    open --> closed: close",
        "    closed --> locked: lock, turn",
        "    locked --> [*]",
        "```",
    ]


def test_a_row_that_no_test_reaches_or_holds_is_named(tmp_path: Path) -> None:
    (tmp_path / "door.py").write_text(DOOR)
    (tmp_path / "test_door.py").write_text(TEST)
    program = """
import pathlib
import door
from tests.support.harness import mutated_tables
summary, unnoticed = mutated_tables.run(door.TRANSITIONS, pathlib.Path("test_door.py"))
print(summary, *unnoticed, sep="\\n")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.splitlines() == [
        "3 transitions, 4 of 9 mutations noticed",
        "no test in test_door.py notices CLOSED, LOCK -> OPEN",
        "no test in test_door.py notices CLOSED, LOCK -> CLOSED",
        "no test in test_door.py notices CLOSED, TURN -> removed",
        "no test in test_door.py notices CLOSED, TURN -> OPEN",
        "no test in test_door.py notices CLOSED, TURN -> CLOSED",
    ]
