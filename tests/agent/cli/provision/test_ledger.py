"""`cellagent provision status` and `export`: the ledger for a person and for programs."""

from __future__ import annotations

import csv
import io
import json

import pytest
from command_line import completed
from ledgers import OTHER, UUID, opened

from agent.config.paths import state_dir
from agent.provisioning.exports import COLUMNS


@pytest.fixture
def two_boards() -> None:
    """Write a ledger with a board that is done, and one that was refused."""
    folder = state_dir()
    folder.mkdir(parents=True, mode=0o700)
    ledger = opened(str(folder / "ledger.sqlite"))
    for uuid, outcome, reason in ((UUID, "done", ""), (OTHER, "refused", "firmware too old")):
        ledger.claim(uuid, device_id=f"nrf-{uuid[-3:]}", slot="A1" if outcome == "done" else "")
        ledger.begin(uuid, "find")
        ledger.conclude(uuid, outcome, "find", reason, 3)
        ledger.release(uuid)
    ledger.close()


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


@pytest.mark.usefixtures("two_boards")
def test_an_export_holds_the_boards_of_one_outcome_in_each_form() -> None:
    table = completed("provision", "export", "--outcome", "done").stdout
    assert [row["device_id"] for row in csv.DictReader(io.StringIO(table))] == ["nrf-11a"]
    objects = completed("provision", "export", "--as", "json").stdout.splitlines()
    assert {json.loads(line)["outcome"] for line in objects} == {"done", "refused"}
    for form in ("bulk", "nordic"):
        done = completed("provision", "export", "--as", form)
        assert done.returncode == 0, done.stderr


def test_an_empty_ledger_is_an_empty_list() -> None:
    done = completed("provision", "status", "--json")
    assert (done.returncode, done.stdout) == (0, "")
    heading = completed("provision", "export").stdout.splitlines()
    assert [len(heading), heading[0].split(",")[0] in COLUMNS] == [1, True]
