"""The slots of a tray: what they are at, which is empty, and which needs a hand first."""

from __future__ import annotations

import pytest

from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.running.tray import Slot, SlotEvent, SlotState, Tray
from at.protocol.state_machine import IllegalTransition
from tests.support.provisioning.plugged_boards import end, place, plugged

WAYS = {
    SlotState.EMPTY: (),
    SlotState.WAITING: (SlotEvent.CONNECT,),
    SlotState.UNLABELLED: (SlotEvent.CONNECT, SlotEvent.ASK),
    SlotState.WORKING: (SlotEvent.CONNECT, SlotEvent.BEGIN),
    SlotState.PASS: (SlotEvent.CONNECT, SlotEvent.BEGIN, SlotEvent.REACH),
    SlotState.FAIL: (SlotEvent.CONNECT, SlotEvent.BEGIN, SlotEvent.FAIL),
    SlotState.BUSY: (SlotEvent.CONNECT, SlotEvent.BEGIN, SlotEvent.HINDER),
}
FOLLOWS = {
    (SlotState.EMPTY, SlotEvent.CONNECT): SlotState.WAITING,
    (SlotState.WAITING, SlotEvent.ASK): SlotState.UNLABELLED,
    (SlotState.WAITING, SlotEvent.BEGIN): SlotState.WORKING,
    (SlotState.UNLABELLED, SlotEvent.BIND): SlotState.WAITING,
    (SlotState.WORKING, SlotEvent.REACH): SlotState.PASS,
    (SlotState.WORKING, SlotEvent.FAIL): SlotState.FAIL,
    (SlotState.WORKING, SlotEvent.HINDER): SlotState.BUSY,
    (SlotState.FAIL, SlotEvent.RETRY): SlotState.WAITING,
    (SlotState.BUSY, SlotEvent.RETRY): SlotState.WAITING,
    # A board at work is taken out when its run has ended.
    **{(state, SlotEvent.LEAVE): SlotState.EMPTY for state in SlotState
       if state not in {SlotState.EMPTY, SlotState.WORKING}},
}  # fmt: skip


def ran(tray: Tray, at: BoardLocation, outcome: str, **more: str) -> Slot:
    tray.begin(at, 10.0)
    return tray.end(end(at, outcome, **more), 14.5)


@pytest.mark.parametrize("state", SlotState)
@pytest.mark.parametrize("event", SlotEvent)
def test_a_slot_goes_on_as_the_table_says_and_not_otherwise(
    state: SlotState, event: SlotEvent
) -> None:
    slot = Slot(place("A1"))
    for each in WAYS[state]:
        slot.enter(each)
    assert slot.state is state
    if (follows := FOLLOWS.get((state, event))) is None:
        with pytest.raises(IllegalTransition):
            slot.enter(event)
        follows = state
    else:
        slot.enter(event)
    assert slot.state is follows


@pytest.mark.parametrize(
    ("outcome", "state", "hand"),
    [
        ("done", SlotState.PASS, False),
        ("unchanged", SlotState.PASS, False),
        ("failed", SlotState.FAIL, True),
        ("refused", SlotState.FAIL, True),
        ("swapped", SlotState.FAIL, True),
        ("busy", SlotState.BUSY, True),
    ],
)
def test_an_outcome_is_pass_fail_or_busy(outcome: str, state: SlotState, hand: bool) -> None:
    tray = Tray()
    tray.look(plugged(place("A1")))
    slot = ran(tray, place("A1"), outcome)
    assert (slot.state, slot.state.needs_hand, slot.seconds) == (state, hand, 4.5)


def test_an_emptied_slot_is_empty_and_holds_nothing_of_the_board_that_left() -> None:
    tray = Tray()
    [slot] = tray.look(plugged(place("A1")))
    slot.label = "L1"
    ran(tray, place("A1"), "failed", uuid="u-1")
    assert tray.look({}) == []
    assert (slot.state, slot.label, slot.uuid) == (SlotState.EMPTY, "", "")
    assert (slot.outcome, slot.step, slot.boards) == (None, "", 1)


def test_a_board_that_was_swapped_for_another_is_run_however_quickly_that_was() -> None:
    tray = Tray()
    tray.look(plugged(place("A1")))
    ran(tray, place("A1"), "done")
    assert tray.look(plugged(place("A1"))) == []
    assert [slot.name for slot in tray.look(plugged(place("A1"), mark=2))] == ["A1"]
    assert [slot.state for slot in tray.waiting()] == [SlotState.WAITING]


def test_a_board_that_leaves_during_its_run_is_gone_after_it() -> None:
    tray = Tray()
    [slot] = tray.look(plugged(place("A1")))
    tray.begin(place("A1"), 0.0)
    tray.look({})
    assert slot.state is SlotState.WORKING
    tray.end(end(place("A1"), "failed"), 1.0)
    tray.look({})
    assert slot.state is SlotState.EMPTY


def test_kits_at_one_place_of_the_hub_are_one_slot_and_named_ports_are_their_own() -> None:
    tray = Tray()
    tray.know([BoardLocation("", "1-1.4", "A1", "")])
    for serial in ("7", "8"):
        kit = BoardLocation(serial, "1-1.4", "A1", f"serial:{serial}")
        [slot] = tray.look({kit.port: (kit, serial)})
        assert slot.location.serial == serial
    assert list(tray.slots) == ["1-1.4"]
    assert Slot(BoardLocation("7", "1-1.4", "", "/dev/ttyACM0")).key == "/dev/ttyACM0"


def test_what_failed_is_tried_again_and_nothing_else() -> None:
    tray, places = Tray(), [place(f"A{number}", number) for number in range(4)]
    tray.look(plugged(*places))
    for at, outcome in zip(places[:3], ("failed", "busy", "done"), strict=True):
        ran(tray, at, outcome)
    tray.begin(places[3], 0.0)
    assert [slot.name for slot in tray.retry()] == ["A0", "A1"]
    assert [slot.name for slot in tray.waiting()] == ["A0", "A1"]
    assert all((slot.step, slot.outcome) == ("", None) for slot in tray.waiting())
    assert tray.retry() == []


def test_a_board_stays_known_where_its_next_run_could_not_ask_it() -> None:
    tray = Tray()
    [slot] = tray.look(plugged(place("A1")))
    ran(tray, place("A1"), "failed", uuid="u-1")
    tray.retry()
    assert ran(tray, place("A1"), "busy").uuid == "u-1"
    assert slot.uuid == "u-1"


def test_a_label_that_was_refused_is_to_be_scanned_again_and_another_one_is_kept() -> None:
    tray, places = Tray(), [place("A1", 1), place("A2", 2)]
    for slot, label in zip(tray.look(plugged(*places)), ("L1", "L2"), strict=True):
        slot.label = label
    assert ran(tray, places[0], "refused", reason_code="label").label == ""
    assert ran(tray, places[1], "failed", reason_code="no-answer").label == "L2"


def test_a_board_in_another_s_place_does_not_get_the_label_that_was_scanned_for_that_one() -> None:
    tray = Tray()
    [slot] = tray.look(plugged(place("A1")))
    slot.label = "L1"
    ran(tray, place("A1"), "swapped", reason_code="swapped", uuid="u-1")
    tray.retry()
    assert (slot.state, slot.label, slot.uuid) == (SlotState.WAITING, "", "")


def test_a_digit_that_counts_nothing_is_no_number_in_a_name() -> None:
    tray = Tray()
    tray.know([place("A1²", 1), place("A10", 2), place("A1", 3)])
    assert [slot.name for slot in tray.ordered()] == ["A1", "A1²", "A10"]


def test_who_needs_a_hand_comes_first_and_the_tray_lies_as_it_was_named() -> None:
    tray = Tray(layout=(2, 2))
    places = [place("B10", 1), place("B2", 2), place("A1", 3), place("C1", 4)]
    tray.know(places)
    tray.look(plugged(*places[:3]))
    ran(tray, places[0], "done")
    ran(tray, places[2], "failed")
    assert [slot.name for slot in tray.ordered()] == ["A1", "B2", "B10", "C1"]
    assert [slot.name for slot in tray.by_need()] == ["A1", "B2", "B10", "C1"]
    assert [[slot.name for slot in row] for row in tray.rows(2)] == [["B10", "B2"], ["A1", "C1"]]
    assert [[slot.name for slot in row] for row in Tray(None, tray.slots).rows(3)] == [
        ["A1", "B2", "B10"],
        ["C1"],
    ]
    assert list(tray.tally().items()) == [
        (SlotState.FAIL, 1), (SlotState.WAITING, 1), (SlotState.PASS, 1), (SlotState.EMPTY, 1)
    ]  # fmt: skip
    assert [state for state in SlotState if state.needs_hand] == [
        SlotState.FAIL, SlotState.BUSY, SlotState.UNLABELLED
    ]  # fmt: skip
