"""What a scanner may say at the bench: the right label, a wrong one, a double, one too late."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.ledger import BoardRecord
from agent.provisioning.running.scans import Scan, Scans
from agent.provisioning.running.tray import SlotState, Tray
from tests.support.provisioning.plugged_boards import end, place, plugged

PLACES = [place(f"A{number}", number) for number in range(1, 5)]


class Line:
    """A tray of four slots and a scanner."""

    def __init__(self, pattern: str = "") -> None:
        self.tray = Tray()
        self.tray.know(PLACES)
        self.scans = Scans(self.tray, pattern)
        self.mark = 0

    def plug(self, *numbers: int, mark: object = 1) -> Scan | None:
        there = [PLACES[number - 1] for number in numbers]
        return self.scans.update(self.tray.look(plugged(*there, mark=mark)))

    def run(self, number: int, outcome: str = "done", **more: str) -> None:
        self.tray.begin(PLACES[number - 1], 0.0)
        self.tray.end(end(PLACES[number - 1], outcome, **more), 1.0)

    def labels(self) -> list[str]:
        return [slot.label for slot in self.tray.ordered()]

    def states(self) -> list[SlotState]:
        return [slot.state for slot in self.tray.ordered()]

    def refused(self, text: str, holder: BoardRecord | None = None) -> str:
        """Scan what must not be taken; return why. Nothing that anyone relies on may change."""
        before = self.labels(), self.states(), self.scans.prompt
        scan = self.scans.scan(text, holder)
        assert not scan.taken, scan
        assert (self.labels(), self.states(), self.scans.prompt) == before
        return scan.words

    def taken(self, text: str, holder: BoardRecord | None = None) -> Scan:
        scan = self.scans.scan(text, holder)
        assert scan.taken, scan
        return scan


def test_labels_go_to_the_boards_that_wait_in_the_order_of_their_slots() -> None:
    line = Line()
    line.plug(1, 2, 3)
    assert line.states() == [SlotState.UNLABELLED] * 3 + [SlotState.EMPTY]
    assert line.scans.prompt == "scan the label of A1"
    assert line.taken("L1").slot == "A1"
    assert line.taken("L2").slot == "A2"
    assert line.labels() == ["L1", "L2", "", ""]
    assert [slot.name for slot in line.tray.waiting()] == ["A1", "A2"]


def test_a_slot_that_is_scanned_gets_the_next_label_also_before_its_board_comes() -> None:
    line = Line()
    line.plug(1)
    line.taken("a4")
    assert line.scans.prompt == "scan the label of A4"
    line.taken("L4")
    assert line.scans.prompt == "scan the label of A1"
    line.plug(1, 4)
    assert [slot.name for slot in line.tray.waiting()] == ["A4"]


def test_with_nobody_waiting_a_label_goes_to_the_next_board() -> None:
    line = Line()
    assert "goes to the next board" in line.taken("L1").words
    assert "double" in line.refused("L1")
    assert "plug it in first" in line.refused("L2")
    told = line.plug(3)
    assert told is not None
    assert (told.taken, told.slot, line.labels()) == (True, "A3", ["", "", "L1", ""])


def test_a_label_for_the_next_board_is_taken_back_by_a_slot() -> None:
    line = Line()
    line.taken("L1")
    assert line.scans.prompt == "plug in the board of label L1, or scan a slot"
    assert line.taken("A4").words == "A4: scan its label; L1 is nobody's again"
    line.taken("L4")
    line.plug(1)
    assert line.labels() == ["", "", "", "L4"]
    assert line.taken("L1").slot == "A1"


def test_that_failed_boards_can_be_tried_again_is_said_while_there_are_any() -> None:
    line = Line()
    line.plug(1)
    line.taken("L1")
    line.run(1, "failed")
    assert line.scans.prompt.endswith("next board; r tries the failed again")
    line.tray.retry()
    assert line.scans.prompt.endswith("next board")


def test_a_label_for_the_next_board_is_nobody_s_where_two_come_at_once() -> None:
    line = Line()
    line.taken("L1")
    told = line.plug(2, 3)
    assert told is not None
    assert (told.taken, line.labels()) == (False, [""] * 4)
    assert "A2 and A3 came at once" in told.words
    assert line.refused("L2") == "A2 and A3 came at once. Scan L2 once more, or a slot"
    assert "once more" in line.refused("L1")
    line.taken("L1")
    assert line.labels() == ["", "L1", "", ""]


def test_where_two_come_at_once_a_slot_that_is_scanned_gets_its_label_at_once() -> None:
    line = Line()
    line.taken("L1")
    line.plug(2, 3)
    assert "once more" in line.refused("L2")
    line.taken("A3")
    assert line.taken("L3").slot == "A3"


def test_a_double_scan_changes_nothing() -> None:
    line = Line()
    line.plug(1, 2)
    line.taken("L1")
    assert line.refused("L1") == "double: label L1 is that of the board in A1"
    line.taken("A2")
    assert "scanned twice" in line.refused("A2")


def test_a_late_scan_changes_nothing() -> None:
    line = Line()
    line.plug(1, 2, 3)
    line.taken("A2")
    line.plug(1, 3)  # its board was taken out before its label came
    assert line.refused("L2").startswith("late: the board in A2 was taken out")
    assert line.scans.prompt == "scan the label of A1 twice"
    assert "once more" in line.refused("L3"), "who scans on without a look is told again"
    assert "once more" in line.refused("L1")
    assert line.taken("L1").slot == "A1"
    assert line.scans.prompt == "scan the label of A3"
    line.tray.begin(PLACES[0], 0.0)
    assert line.refused("A1") == "late: A1 is at work"
    line.tray.end(end(PLACES[0], "done"), 1.0)
    assert line.refused("A1") == "late: A1 is done, with label L1; take it out"


def test_a_slot_whose_board_became_another_is_not_given_the_label_of_the_first() -> None:
    line = Line()
    line.plug(1, mark=1)
    line.plug(1, mark=2)
    assert "late" in line.refused("L1")
    line.taken("L1")


def test_a_board_that_comes_does_not_change_whose_label_is_awaited() -> None:
    line = Line()
    line.plug(3)
    line.plug(1, 3)
    assert line.taken("L3").slot == "A3"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("L12", "no label"),
        ("L1234x", "no label"),
        ("Z9", "no slot of this tray"),
        ("L\x1b[2J", "cannot be printed"),
        ("caf\ufffd", "no UTF-8"),
        ("L" * 65, "longer than 64"),
    ],
)
def test_a_wrong_scan_changes_nothing(text: str, why: str) -> None:
    line = Line(r"L\d{4}")
    line.plug(1)
    assert why in line.refused(text)
    line.taken("L1234")


def test_a_label_of_the_ledger_is_taken_for_its_own_board_alone() -> None:
    line = Line()
    known = BoardRecord("u-1", label="L1")
    line.plug(1, 2)
    line.taken("L1", known)  # the run will say whether this is the board
    line.run(1, "failed", reason_code="no-answer", uuid="u-1")
    assert "is that of the board in A1" in line.refused("L1", known)
    assert "is that of the board in A1" in line.refused("L1-copy", known)
    line.taken("L2")
    line.run(2, "refused", reason_code="label", uuid="u-2")
    assert line.taken("A2").words == "A2: scan its label"
    assert "not in this tray" in line.refused("L3", BoardRecord("u-3"))
    line.taken("L2", BoardRecord("u-2"))


def test_a_failed_slot_that_is_scanned_is_tried_again_with_its_label() -> None:
    line = Line()
    line.plug(1)
    line.taken("L1")
    line.run(1, "busy")
    assert line.taken("A1").words == "A1 is tried again"
    assert (line.labels()[0], line.states()[0]) == ("L1", SlotState.WAITING)


def test_a_name_that_two_slots_have_is_no_slot() -> None:
    tray = Tray()
    tray.know([BoardLocation("", "", "A1", "/dev/a"), BoardLocation("", "", "a1", "/dev/b")])
    assert tray.named("A1") is not None
    assert tray.named("/DEV/B") is not None
    tray.know([BoardLocation("", "", "A1", "/dev/c")])
    assert tray.named("A1") is None


ACTS = st.one_of(
    st.tuples(st.just("scan"), st.sampled_from(["A1", "A2", "A3", "L1", "L2", "L3", "?", "L1 "])),
    st.tuples(st.just("plug"), st.sets(st.integers(1, 4))),
    st.tuples(st.just("end"), st.sampled_from(["done", "failed", "label", "busy"])),
    st.tuples(st.just("retry"), st.none()),
)


@given(st.lists(ACTS, max_size=40))
def test_whatever_happens_no_label_is_twice_in_a_tray_and_no_board_begins_without(
    acts: list[tuple[str, object]],
) -> None:
    line, mark = Line(), 0
    for act, value in acts:
        if act == "scan":
            before = line.labels(), line.states()
            scan = line.scans.scan(str(value))
            assert scan.taken or before == (line.labels(), line.states())
        elif act == "plug" and isinstance(value, set):
            mark += 1
            line.plug(*value, mark=mark % 2)
        elif act == "retry":
            line.tray.retry()
            line.scans.update([])
        for slot in line.tray.waiting():
            assert slot.label
            line.tray.begin(slot.location, 0.0)
        if act == "end":
            for slot in line.tray.slots.values():
                if slot.state is SlotState.WORKING:
                    code = "label" if value == "label" else ""
                    outcome = "refused" if code else str(value)
                    line.tray.end(end(slot.location, outcome, reason_code=code), 1.0)
        labels = [label for label in line.labels() if label]
        assert len(labels) == len(set(labels))
        for slot in line.tray.slots.values():
            assert slot.label or slot.state is not SlotState.WORKING
