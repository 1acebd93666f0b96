"""Boards and runs are chosen by the database as a filter in Python would, and none is missed."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from agent.provisioning.ledger import BoardRecord, RunRecord, open_ledger
from agent.provisioning.ledger import listing as module
from agent.provisioning.ledger.listing import Listing, RecordFilter
from agent.provisioning.ledger.reader import LedgerReader
from agent.provisioning.report import report
from tests.support.provisioning.ledgers import NOW, UUID, run_of


@pytest.fixture
def ledger(address: str, monkeypatch: pytest.MonkeyPatch) -> LedgerReader:
    """Return a ledger with forty runs of twelve boards, and eight of none."""
    monkeypatch.setattr(module, "_PAGE", 5)
    chance, clock = random.Random(1), [NOW]
    filled = open_ledger(address, "one", now=lambda: clock[0])
    for number in range(40):
        clock[0] = NOW + timedelta(minutes=number)
        filled.station = chance.choice(["one", "two"])
        run = run_of(
            f"board-{chance.randrange(12):02}", began_at=clock[0], lot=chance.choice(["", "L1"])
        )
        outcome = chance.choice(["done", "failed", "refused"])
        code = "" if outcome == "done" else chance.choice(["no-clock", "no-answer"])
        filled.claim(run)
        filled.conclude(
            replace(run, outcome=outcome, reason_code=code, step="key", ended_at=clock[0])
        )
        filled.release(run.uuid)
    for number in range(8):
        filled.record_run(run_of("", outcome="failed", reason_code="no-answer", slot=f"A{number}"))
    return filled


FILTERS = [
    RecordFilter(outcome=outcome, station=station, lot=lot, reason=reason, since=since)
    for outcome in (None, "done", "failed")
    for station in (None, "two")
    for lot in (None, "L1")
    for reason in (None, "no-clock")
    for since in (None, NOW + timedelta(minutes=20))
]


def test_each_filter_finds_what_a_filter_in_python_finds(ledger: LedgerReader) -> None:
    boards = list(Listing(ledger, BoardRecord, RecordFilter()).every())
    runs = list(Listing(ledger, RunRecord, RecordFilter()).every())
    assert (len(runs), len({run.id for run in runs})) == (48, 48)
    for wanted in FILTERS:
        of_run = [run for run in runs if _run_matches(run, wanted)]
        of_board = [board for board in boards if _board_matches(board, wanted, runs)]
        listed_runs = Listing(ledger, RunRecord, wanted)
        listed_boards = Listing(ledger, BoardRecord, wanted)
        assert list(listed_runs.every()) == of_run
        assert list(listed_boards.every()) == of_board
        assert sum(listed_boards.counts().values()) == len(of_board)
        assert sum(listed_runs.counts().values()) == len(of_run)
        pages = [listed_boards.newest(5, page) for page in (1, 2, 3, 4)]
        newest = sorted(of_board, key=lambda board: -board.change)
        assert [board for page in pages for board in page] == newest
    ledger.close()


def _run_matches(run: RunRecord, wanted: RecordFilter) -> bool:
    return all([
        wanted.outcome in (None, run.outcome), wanted.station in (None, run.station),
        wanted.lot in (None, run.lot), wanted.reason in (None, run.reason_code),
        wanted.since is None or run.began_at >= wanted.since,
    ])  # fmt: skip


def _board_matches(board: BoardRecord, wanted: RecordFilter, runs: list[RunRecord]) -> bool:
    own = [run for run in runs if run.uuid == board.uuid]
    changed = board.updated_at
    assert isinstance(changed, datetime)
    return all([
        wanted.outcome in (None, board.outcome), wanted.station in (None, board.station),
        wanted.lot is None or any(run.lot == wanted.lot for run in own),
        wanted.reason is None or any(run.reason_code == wanted.reason for run in own),
        wanted.since is None or changed >= wanted.since,
    ])  # fmt: skip


def test_runs_come_by_board_as_they_began_and_a_board_that_changes_meanwhile_is_not_missed(
    ledger: LedgerReader,
) -> None:
    runs = list(Listing(ledger, RunRecord, RecordFilter()).every())
    assert [run.uuid for run in runs] == sorted(run.uuid for run in runs)
    assert [run.began_at for run in runs[8:]] == [
        run.began_at for run in sorted(runs[8:], key=lambda run: (run.uuid, run.began_at))
    ]
    seen = []
    for board in Listing(ledger, BoardRecord, RecordFilter()).every():
        seen.append(board.uuid)
        ledger.query("UPDATE boards SET slot = 'B1' WHERE uuid >= 'board-03'", {})
    assert seen == sorted({run.uuid for run in runs[8:]})
    ledger.close()


def test_a_number_that_no_database_takes_is_no_bound(ledger: LedgerReader) -> None:
    boards = Listing(ledger, BoardRecord, RecordFilter())
    assert len(boards.newest(10**30)) == 12
    assert boards.newest(1, 10**30) == []
    assert boards.newest(10**30, 10**30) == []
    ledger.close()


def test_a_clock_that_was_set_back_makes_a_retry_no_first_pass(address: str) -> None:
    filled = open_ledger(address, "one", now=lambda: NOW)
    for began_at, outcome in ((NOW, "failed"), (NOW - timedelta(hours=2), "done")):
        run = run_of(began_at=began_at)
        filled.claim(run)
        filled.conclude(replace(run, outcome=outcome, ended_at=began_at))
        filled.release(run.uuid)
    runs = list(Listing(filled, RunRecord, RecordFilter()).every())
    assert runs == filled.runs(UUID)
    made = report(runs).total
    assert (made.passed, made.first_pass, made.attempts) == (1, 0, 2)
    filled.close()
