"""`cellagent provision status`: the ledger for a person and for programs."""

from __future__ import annotations

import json

import pytest
from command_line import completed
from ledgers import UUID

from agent.provisioning.exports import COLUMNS


@pytest.mark.usefixtures("two_boards")
def test_every_board_is_listed_and_a_reason_has_a_line_of_its_own() -> None:
    lines = completed("provision", "status").stdout.splitlines()
    assert lines[0].split() == ["slot", "device", "outcome", "changed"]
    cells = [line.split()[:3] for line in lines[1:]]
    assert ["A1", "nrf-11a", "done"] in cells
    assert ["-", "nrf-22b", "refused"] in cells
    assert lines[[line[:3] for line in cells].index(["-", "nrf-22b", "refused"]) + 2].strip() == (
        "firmware too old"
    )
    rows = [
        json.loads(line) for line in completed("provision", "status", "--json").stdout.splitlines()
    ]
    assert [set(row) for row in rows] == [set(COLUMNS)] * 2


@pytest.mark.usefixtures("two_boards")
def test_the_steps_of_one_board_are_listed_and_an_unknown_board_is_exit_2() -> None:
    steps = completed("provision", "status", UUID, "--json").stdout.splitlines()
    assert json.loads(steps[0])["step"] == "find"
    people = completed("provision", "status", UUID).stdout.splitlines()
    assert people[0] == UUID
    assert people[1].split() == ["when", "step", "state", "detail", "station"]
    unknown = completed("provision", "status", "no-such-board")
    assert unknown.returncode == 2
    assert "no-such-board" in unknown.stderr


def test_an_empty_ledger_is_an_empty_list() -> None:
    done = completed("provision", "status", "--json")
    assert (done.returncode, done.stdout) == (0, "")
