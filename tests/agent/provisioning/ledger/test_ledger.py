"""The ledger keeps every step, on SQLite and on a real PostgreSQL alike."""

from __future__ import annotations

import pytest

from agent.provisioning.ledger import BoardBusy, LabelTaken
from agent.provisioning.ledger.reader import unfinished
from tests.support.provisioning.ledgers import (
    NOW,
    OTHER,
    UUID,
    ended,
    opened,
    run_of,
    runs_once_lost,
)


@pytest.mark.contract("C10")
def test_what_was_learned_is_there_after_the_ledger_was_closed(address: str) -> None:
    ledger = opened(address)
    ledger.claim(run := run_of(imei="350457791234567", slot="A1"))
    ledger.begin(UUID, "key", "10", writes=1)
    ledger.finish_key(UUID, "key", "made on the modem", "PEM", "D1", "")
    ledger.conclude(ended(run, "failed", step="register", reason="the service said no"))
    ledger.close()
    ledger = opened(address)
    record = ledger.board(UUID)
    assert record is not None
    assert (record.public_key, record.slot, record.outcome, record.writes) == (
        "PEM",
        "A1",
        "failed",
        1,
    )
    assert [(step.step, step.state) for step in ledger.steps(UUID)] == [
        ("key", "begun"), ("key", "done"), ("register", "failed"),
    ]  # fmt: skip
    assert ledger.board(OTHER) is None
    ledger.close()


def test_a_step_that_was_begun_and_not_done_is_known(address: str) -> None:
    ledger = opened(address)
    ledger.claim(run_of())
    assert unfinished(ledger.steps(UUID), "key") is None
    ledger.begin(UUID, "key")
    assert unfinished(ledger.steps(UUID), "key") == ""
    ledger.finish(UUID, "key")
    assert unfinished(ledger.steps(UUID), "key") is None
    ledger.close()


def test_one_board_on_two_ports_is_worked_on_once(address: str) -> None:
    ledger = opened(address)
    ledger.claim(run_of())
    with pytest.raises(BoardBusy, match="two ports"):
        ledger.claim(run_of())
    ledger.release(UUID)
    ledger.claim(run_of())
    ledger.close()


def test_writes_are_counted_as_they_begin_and_those_that_were_none_are_taken_back(
    address: str,
) -> None:
    ledger = opened(address)
    ledger.claim(first := run_of())
    ledger.begin(UUID, "ca-chain", writes=1)
    ledger.release(UUID)  # cut off here: it was written, or not
    ledger.claim(second := run_of())
    ledger.never_done(ledger.steps(UUID)[-1], "the modem lists nothing of it")
    ledger.begin(UUID, "ca-chain", writes=1)
    ledger.begin(UUID, "key", writes=1)
    ledger.refused(UUID, "key", "523", writes=1)
    ledger.conclude(ended(second, "failed", step="key"))
    record = ledger.board(UUID)
    assert record is not None
    assert record.writes == 1
    runs = {run.id: (run.outcome, run.writes) for run in ledger.runs(UUID)}
    assert runs == {first.id: ("interrupted", 0), second.id: ("failed", 1)}
    ledger.close()


def test_a_board_is_unfinished_until_it_is_done_and_then_done_whatever_comes(address: str) -> None:
    ledger = opened(address)
    run = run_of()
    assert ledger.claim(run)().record.outcome == "unfinished"
    ledger.conclude(ended(run, "done"))
    ledger.release(UUID)
    again = ledger.claim(second := run_of())().record
    assert (again.outcome, again.last_outcome) == ("done", "unfinished")
    ledger.conclude(ended(second, "refused", reason="no"))
    record = ledger.board(UUID)
    assert record is not None
    assert (record.outcome, record.last_outcome, record.reason) == ("done", "refused", "no")
    assert (record.made_at, record.made_station, record.made_run) == (NOW, "one", run.id)
    ledger.close()


def test_a_board_has_a_key_for_each_tag_and_one_that_is_live(address: str) -> None:
    ledger = opened(address)
    for tag, key in ((10, "A"), (11, "B"), (10, "C")):
        ledger.claim(run_of(security_tag=tag))
        ledger.finish_key(UUID, "key", "", key, key.lower(), "another was made")
        ledger.update(UUID, certificate=f"for {key}")
        ledger.release(UUID)
    found = [ledger.board(UUID, tag) for tag in (10, 11, 12, None)]
    assert [one and (one.public_key, one.certificate) for one in found] == [
        ("C", "for C"), ("B", "for B"), ("", ""), ("C", "for C"),
    ]  # fmt: skip
    keys = [(key.public_key, key.retired_at, key.retired_because) for key in ledger.keys(UUID)]
    assert keys == [("A", NOW, "another was made"), ("B", None, ""), ("C", None, "")]
    ledger.close()


def test_a_run_that_was_cut_off_is_recorded_as_interrupted_when_the_ledger_is_opened_next(
    address: str,
) -> None:
    ledger = opened(address)
    ledger.claim(run_of())
    ledger.begin(UUID, "ca-chain")
    ledger.close()
    ledger = opened(address)
    [run] = runs_once_lost(ledger, UUID)
    assert (run.outcome, run.step, run.reason_code, run.ended_at) == (
        "interrupted", "ca-chain", "interrupted", NOW,
    )  # fmt: skip
    ledger.close()


def test_each_change_comes_once_and_in_order(address: str) -> None:
    ledger = opened(address)
    ledger.claim(run := run_of())
    ledger.begin(UUID, "key")
    first = list(ledger.changes())
    assert sorted(type(one).__name__ for one in first) == ["BoardRecord", "RunRecord", "StepRecord"]
    numbers = [one.change for one in first]
    assert numbers == sorted(set(numbers))
    assert not list(ledger.changes(numbers[-1]))
    ledger.finish_key(UUID, "key", "", "PEM", "D", "")
    ledger.conclude(ended(run, "done"))
    second = list(ledger.changes(numbers[-1]))
    assert sorted(type(one).__name__ for one in second) == [
        "BoardRecord", "KeyRecord", "RunRecord", "StepRecord",
    ]  # fmt: skip
    ledger.close()


def test_a_column_that_is_not_there_is_a_defect_and_not_a_statement(address: str) -> None:
    ledger = opened(address)
    ledger.claim(run_of())
    with pytest.raises(ValueError, match="no column"):
        ledger.update(UUID, **{"outcome = 'x' --": "y"})
    ledger.close()


def test_runs_are_due_until_they_were_given_in_the_order_in_which_they_ended(address: str) -> None:
    ledger = opened(address)
    before = run_of(OTHER)
    ledger.claim(before)
    ledger.conclude(ended(before, "done"))
    ledger.release(OTHER)
    ledger.hands_over = True
    first, second, lost = run_of(), run_of(OTHER), run_of("")
    ledger.claim(first)
    ledger.claim(second)
    assert ledger.due_handovers() == []
    ledger.conclude(ended(second, "failed"))
    ledger.record_run(ended(lost, "refused"))
    ledger.conclude(ended(first, "done"))
    newest = ledger.newest_change()
    due = ledger.due_handovers()
    assert [run.id for run in due] == [second.id, lost.id, first.id]
    assert [run.id for run in ledger.due_handovers(after=due[0].change)] == [lost.id, first.id]
    ledger.handed_over(second.id)
    assert [run.id for run in ledger.due_handovers()] == [lost.id, first.id]
    assert ledger.newest_change() == newest  # it is no change of a record
    ledger.close()
    again = opened(address)
    assert [run.id for run in again.due_handovers()] == [lost.id, first.id]
    again.close()
    other = opened(address, "two")
    assert other.due_handovers() == []
    other.close()


def test_a_label_is_one_board_s_and_moves_when_that_is_allowed(address: str) -> None:
    ledger = opened(address)
    for uuid in (UUID, OTHER):
        ledger.claim(run_of(uuid))
    assert ledger.bind_label(UUID, "L1", replaces=False)() == ""
    assert ledger.bind_label(UUID, "L1", replaces=False)() == "", "the same again"
    with pytest.raises(LabelTaken, match=f"L1 is that of board {UUID}"):
        ledger.bind_label(OTHER, "L1", replaces=False)()
    with pytest.raises(LabelTaken, match="has the label L1, and L2 was scanned") as taken:
        ledger.bind_label(UUID, "L2", replaces=False)()
    assert "`--relabel L2`" in taken.value.hint
    assert ledger.labelled("L2") is None
    moved = ledger.bind_label(OTHER, "L1", replaces=True)()
    assert moved == f"--relabel L1: label L1 is that of board {UUID}"
    held = ledger.labelled("L1"), ledger.board(UUID)
    assert [one and one.label for one in held] == ["L1", ""]
    assert held[0] is not None
    assert held[0].uuid == OTHER
    ledger.close()


def test_a_clone_that_is_refused_does_not_give_the_board_its_imei(address: str) -> None:
    mine, other = "004400000000017", "004400000000025"
    ledger = opened(address)

    def run(imei: str, outcome: str) -> str:
        ledger.claim(begun := run_of(imei=imei))
        if imei == mine:
            ledger.finish_key(UUID, "key", "made", "PEM", "D1", "")
        ledger.conclude(ended(begun, outcome))
        ledger.release(UUID)
        record = ledger.board(UUID)
        assert record is not None
        return record.imei

    assert run(mine, "done") == mine
    assert run(other, "refused") == mine
    assert {one.imei for one in ledger.runs(UUID)} == {mine, other}
    assert run(other, "done") == other  # it was allowed
    ledger.close()


def test_a_board_without_a_key_has_the_imei_that_was_read_last(address: str) -> None:
    ledger = opened(address)
    for imei in ("004400000000017", "004400000000025"):
        ledger.claim(begun := run_of(imei=imei))
        ledger.conclude(ended(begun, "failed"))
        ledger.release(UUID)
        assert (record := ledger.board(UUID)) is not None
        assert record.imei == imei
    ledger.close()


def test_a_run_gives_up_the_board_that_it_has_and_none_of_another_run(address: str) -> None:
    ledger = opened(address)
    ledger.claim(run := run_of())
    ledger.give_up(run_of())
    assert ledger.claims == 1
    ledger.give_up(run)
    assert ledger.claims == 0
    ledger.close()
