"""`cellagent provision export`: the ledger for people and for programs."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from agent.cli.tree import root
from agent.files.paths import state_dir
from agent.provisioning import exports
from agent.provisioning.record_columns import BOARD
from tests.support.commands.command_line import completed
from tests.support.provisioning.ledgers import UUID, older_ledger, opened


def changes(cursor: int) -> tuple[list[dict[str, Any]], int]:
    """Return what changed since a cursor, and the next one."""
    lines = completed("provision", "export", "--since", str(cursor)).stdout.splitlines()
    *records, last = [json.loads(line) for line in lines]
    assert list(last) == ["cursor"]
    return records, last["cursor"]


@pytest.mark.usefixtures("two_boards")
def test_an_export_holds_the_boards_of_one_outcome_in_each_form() -> None:
    table = completed("provision", "export", "--outcome", "done").stdout
    [row] = csv.DictReader(io.StringIO(table))
    assert tuple(row) == BOARD
    assert (row["device_id"], row["writes"], row["security_tag"]) == ("nrf-11a", "3", "")
    assert row["updated_at"] == "2026-01-02T03:04:05.000+00:00"
    objects = completed("provision", "export", "--as", "json").stdout.splitlines()
    assert {json.loads(line)["outcome"] for line in objects} == {"done", "refused"}
    assert {json.loads(line)["writes"] for line in objects} == {3}
    told = completed("provision", "export", "--json").stdout.splitlines()
    assert [json.loads(line) for line in told] == [json.loads(line) for line in objects]
    unlike = completed("provision", "export", "--json", "--as", "csv")
    assert (unlike.returncode, json.loads(unlike.stdout)["error"]["kind"]) == (2, "usage")
    for form in ("bulk", "nordic"):
        done = completed("provision", "export", "--as", form)
        assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("two_boards")
@pytest.mark.parametrize(("rows", "is_too_many"), [(1000, False), (1001, True)])
def test_more_rows_than_the_service_takes_at_a_time_are_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rows: int,
    is_too_many: bool,
) -> None:
    given = ["x\n"] * rows
    monkeypatch.setattr(exports, "for_bulk_onboarding", lambda *_, **__: given)
    root.main(["provision", "export", "--as", "bulk"], standalone_mode=False)
    told = capsys.readouterr()
    assert told.out == "".join(given)
    assert ("1,001 rows: the service takes 1,000 of them" in told.err) is is_too_many


@pytest.mark.usefixtures("two_boards")
def test_each_change_is_given_once_and_in_order_and_the_next_begins_where_it_ended() -> None:
    everything, cursor = changes(0)
    assert {record["kind"] for record in everything} == {"board", "run", "step"}
    numbers = [record["change"] for record in everything]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == cursor
    assert changes(cursor) == ([], cursor)
    # Killed behind the third line: what was not yet taken comes, and nothing twice.
    assert changes(numbers[2]) == (everything[3:], cursor)
    ledger = opened(str(state_dir() / "ledger.sqlite"))
    with_another = ledger.board(UUID)
    ledger.close()
    assert with_another is not None


@pytest.mark.usefixtures("two_boards")
def test_a_cursor_that_cannot_be_is_refused_with_what_to_write() -> None:
    for cursor in ("999999", "2026-03-31", "-1", "x", "1" * 40):
        wrong = completed("provision", "export", f"--since={cursor}")
        assert wrong.returncode == 2
        assert "0" in wrong.stderr
        assert "Traceback" not in wrong.stderr
    both = completed("provision", "export", "--since", "0", "--as", "csv")
    assert both.returncode == 2


def test_an_empty_ledger_is_a_heading_alone() -> None:
    heading = completed("provision", "export").stdout.splitlines()
    assert heading == [",".join(BOARD)]
    assert changes(0) == ([], 0)


@pytest.mark.parametrize("version", ["0001", "0002"])
def test_an_older_ledger_is_read_as_it_is_and_has_no_cursor(version: str) -> None:
    path = state_dir() / "ledger.sqlite"
    older_ledger(str(path), version)
    before = path.read_bytes()
    objects = completed("provision", "export", "--as", "json").stdout.splitlines()
    assert {json.loads(line)["kind"] for line in objects} == {"board"}
    assert len(completed("provision", "status", "--json").stdout.splitlines()) == len(objects)
    refused = completed("provision", "export", "--since", "0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "cellagent provision migrate" in refused.stderr
    for words in (["report"], ["status", "--runs"]):
        none = completed("provision", *words)
        assert (none.returncode, none.stdout) == (0, "")
        assert f"version {version}" in none.stderr
        assert "cellagent provision migrate" in none.stderr
    assert path.read_bytes() == before


def test_two_boards_with_one_device_id_are_not_onboarded_by_a_file_but_named() -> None:
    older_ledger(str(state_dir() / "ledger.sqlite"), "0002")
    run = completed("provision", "export", "--as", "bulk")
    ids = [row[0] for row in csv.reader(io.StringIO(run.stdout))]
    assert (run.returncode, len(ids)) == (0, 4)
    assert len(set(ids)) == len(ids)
    told = [line for line in run.stderr.splitlines() if line.startswith("left out: board ")]
    assert len(told) == 2
