"""`cellagent provision status`: the ledger for a person and for programs."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from agent.provisioning.ledger import RunRecord
from agent.provisioning.record_columns import BOARD, KINDS
from tests.support.commands.command_line import completed
from tests.support.provisioning.ledgers import NOW, OTHER, UUID


def listed(*arguments: str) -> list[dict[str, Any]]:
    lines = completed("provision", "status", *arguments, "--json").stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.usefixtures("two_boards")
def test_every_board_is_listed_and_a_reason_has_a_line_of_its_own() -> None:
    shown = completed("provision", "status")
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["slot", "device", "outcome", "changed"]
    cells = [line.split()[:3] for line in lines[1:]]
    assert ["A1", "nrf-11a", "done"] in cells
    assert ["-", "nrf-22b", "refused"] in cells
    assert lines[cells.index(["-", "nrf-22b", "refused"]) + 2].strip() == "firmware too old"
    assert "2 in all: 1 done, 1 refused" in shown.stderr
    assert [set(row) for row in listed()] == [{"kind", *BOARD}] * 2


@pytest.mark.usefixtures("two_boards")
def test_times_are_iso_8601_with_a_zone_and_numbers_are_numbers() -> None:
    [board] = listed("--outcome", "done")
    assert datetime.fromisoformat(board["updated_at"]) == NOW
    assert "T" in board["updated_at"]
    assert (board["writes"], board["made_station"]) == (3, "one")
    row = completed("provision", "status", "--outcome", "done").stdout.splitlines()[1]
    assert datetime.fromisoformat(row.split()[3]) == NOW.replace(second=0)


@pytest.mark.usefixtures("two_boards")
@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (["--outcome", "refused"], [OTHER]),
        (["--station", "one"], [UUID, OTHER]),
        (["--station", "two"], []),
        (["--lot", "L7"], [UUID, OTHER]),
        (["--lot", "L8"], []),
        (["--reason", "old-firmware"], [OTHER]),
        (["--since", "2026-01-02T03:04:05Z"], [UUID, OTHER]),
        (["--since", "2026-01-02T03:04:06Z"], []),
        (["--lot", "L7", "--outcome", "done"], [UUID]),
        (["--limit", "1"], [OTHER]),
        (["--limit", "1", "--page", "2"], [UUID]),
        (["--page", "2"], []),
    ],
)
def test_options_choose_the_boards_and_pages_them(chosen: list[str], found: list[str]) -> None:
    assert [board["uuid"] for board in listed(*chosen)] == found


@pytest.mark.usefixtures("two_boards")
def test_a_page_tells_of_the_next_and_a_filter_that_finds_nothing_says_so() -> None:
    first = completed("provision", "status", "--limit", "1")
    assert len(first.stdout.splitlines()) == 3
    assert "--page 2" in first.stderr
    assert "nothing in the ledger is so" in completed("provision", "status", "--lot", "no").stderr
    wrong = completed("provision", "status", "--since", "yesterday")
    assert wrong.returncode == 2
    assert "2026-03-31T06:00" in wrong.stderr


@pytest.mark.usefixtures("two_boards")
def test_runs_are_listed_also_where_the_board_never_told_who_it_is() -> None:
    runs = listed("--runs")
    assert [set(run) for run in runs] == [{"kind", *KINDS[RunRecord][1]}] * 3
    assert [run["uuid"] for run in runs] == ["", UUID, OTHER]
    assert runs[1]["timings"] == {"key": 6.5}
    [lost] = listed("--runs", "--reason", "no-answer")
    assert (lost["slot"], lost["exit"]) == ("A3", 3)
    people = completed("provision", "status", "--runs").stdout
    assert "no-answer: it does not answer" in people


@pytest.mark.usefixtures("two_boards")
def test_one_board_is_shown_with_its_runs_and_steps_and_an_unknown_one_is_exit_2() -> None:
    kinds = [record["kind"] for record in listed(UUID)]
    assert kinds == ["board", "run", "step"]
    assert listed("nrf-11a") == listed(UUID.upper()) == listed(UUID)
    people = completed("provision", "status", UUID).stdout
    assert "key" in people.splitlines()[-1].split()
    unknown = completed("provision", "status", "no-such-board")
    assert unknown.returncode == 2
    assert "no-such-board" in unknown.stderr
    both = completed("provision", "status", UUID, "--lot", "L7")
    assert both.returncode == 2


def test_an_empty_ledger_says_so_and_what_comes_next() -> None:
    done = completed("provision", "status", "--json")
    assert (done.returncode, done.stdout) == (0, "")
    people = completed("provision", "status")
    assert (people.returncode, people.stdout) == (0, "")
    assert "the ledger holds none yet" in people.stderr
    assert "cellagent provision run" in people.stderr
