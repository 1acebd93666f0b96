"""The ledger keeps every step, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import pytest
from ledgers import OTHER, UUID, opened

from agent.provisioning.ledger import BoardBusy


@pytest.mark.contract("C10")
def test_what_was_learned_is_there_after_the_ledger_was_closed(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID, imei="350457791234567", slot="A1")
    ledger.begin(UUID, "key")
    ledger.finish(UUID, "key", "made on the modem", public_key="PEM")
    ledger.conclude(UUID, "failed", "register", "the service said no", 2)
    ledger.close()
    ledger = opened(address)
    record = ledger.board(UUID)
    assert record is not None
    assert (record.public_key, record.slot, record.outcome, record.writes) == (
        "PEM",
        "A1",
        "failed",
        2,
    )
    assert [(step.step, step.state) for step in ledger.steps(UUID)] == [
        ("key", "begun"), ("key", "done"), ("register", "failed"),
    ]  # fmt: skip
    assert ledger.board(OTHER) is None
    ledger.close()


def test_a_step_that_was_begun_and_not_done_is_known(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    assert ledger.unfinished(UUID, "key") is None
    ledger.begin(UUID, "key")
    assert ledger.unfinished(UUID, "key") == ""
    ledger.finish(UUID, "key")
    assert ledger.unfinished(UUID, "key") is None
    ledger.close()


def test_one_board_on_two_ports_is_worked_on_once(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    with pytest.raises(BoardBusy, match="two ports"):
        ledger.claim(UUID)
    ledger.release(UUID)
    ledger.claim(UUID)
    ledger.close()


def test_writes_add_up_over_runs_those_of_a_run_that_was_cut_off_too(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    ledger.finish(UUID, "ca-chain", "", 1)
    ledger.release(UUID)  # cut off here
    ledger.claim(UUID)
    ledger.finish(UUID, "key", "", 1)
    ledger.conclude(UUID, "done", "restore", "", 1)
    ledger.conclude(UUID, "unchanged", "restore", "", 0)
    record = ledger.board(UUID)
    assert record is not None
    assert record.writes == 3
    ledger.close()


def test_a_board_is_unfinished_from_its_claim_until_its_run_has_ended(address: str) -> None:
    ledger = opened(address)
    assert ledger.claim(UUID).outcome == "unfinished"
    ledger.conclude(UUID, "done", "proof", "", 0)
    ledger.release(UUID)
    again = ledger.claim(UUID)
    assert (again.outcome, again.reason) == ("unfinished", "")
    ledger.close()


def test_a_column_that_is_not_there_is_a_defect_and_not_a_statement(address: str) -> None:
    ledger = opened(address)
    ledger.claim(UUID)
    with pytest.raises(ValueError, match="no column"):
        ledger.update(UUID, **{"outcome = 'x' --": "y"})
    ledger.close()
