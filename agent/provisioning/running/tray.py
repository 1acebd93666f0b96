"""The tray: which slot is empty, at work, right or wrong, and which needs a hand. Pure.

Whatever shows a tray, a table or a page, shows these states; no other place judges an outcome.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct, field

from agent.provisioning.boards.board import BoardLocation, BoardSwapped
from agent.provisioning.ledger import LabelTaken
from agent.provisioning.running.outcome import Outcome
from at.protocol.state_machine import Transitions


class SlotState(Enum):
    """What a slot is at; the value is its word. In the order in which a hand is needed."""

    FAIL = "FAIL"
    BUSY = "BUSY"
    UNLABELLED = "scan"
    WORKING = "work"
    WAITING = "wait"
    PASS = "PASS"
    EMPTY = "empty"

    @property
    def needs_hand(self) -> bool:
        """Whether a person must do something with the board."""
        return self in {SlotState.FAIL, SlotState.BUSY, SlotState.UNLABELLED}

    @property
    def may_be_tried_again(self) -> bool:
        """Whether the run of a board has ended without making it right."""
        return self in {SlotState.FAIL, SlotState.BUSY}

    @property
    def ended(self) -> bool:
        """Whether a run of the board that is there has ended."""
        return self in {SlotState.FAIL, SlotState.BUSY, SlotState.PASS}


class SlotEvent(Enum):
    """An event of a slot."""

    CONNECT = "a board was plugged in"
    ASK = "its label is to be scanned"
    BIND = "its label was scanned"
    BEGIN = "its run begins"
    REACH = "its run ended, and it is as it should be"
    FAIL = "its run ended, and it is not"
    HINDER = "its run ended, for another has the board"
    RETRY = "it is to be tried again"
    LEAVE = "it was taken out"


TRANSITIONS = Transitions(
    {
        (SlotState.EMPTY, SlotEvent.CONNECT): SlotState.WAITING,
        (SlotState.WAITING, SlotEvent.ASK): SlotState.UNLABELLED,
        (SlotState.WAITING, SlotEvent.BEGIN): SlotState.WORKING,
        (SlotState.WAITING, SlotEvent.LEAVE): SlotState.EMPTY,
        (SlotState.UNLABELLED, SlotEvent.BIND): SlotState.WAITING,
        (SlotState.UNLABELLED, SlotEvent.LEAVE): SlotState.EMPTY,
        (SlotState.WORKING, SlotEvent.REACH): SlotState.PASS,
        (SlotState.WORKING, SlotEvent.FAIL): SlotState.FAIL,
        (SlotState.WORKING, SlotEvent.HINDER): SlotState.BUSY,
        (SlotState.PASS, SlotEvent.LEAVE): SlotState.EMPTY,
        (SlotState.FAIL, SlotEvent.RETRY): SlotState.WAITING,
        (SlotState.FAIL, SlotEvent.LEAVE): SlotState.EMPTY,
        (SlotState.BUSY, SlotEvent.RETRY): SlotState.WAITING,
        (SlotState.BUSY, SlotEvent.LEAVE): SlotState.EMPTY,
    }
)
"""A slot of the bench's tray. A board that leaves during its run is seen to be gone after it."""
_END_OF = {"done": SlotEvent.REACH, "unchanged": SlotEvent.REACH, "busy": SlotEvent.HINDER}
"""The outcomes that are no failure; refused, swapped and failed are."""


class Slot(Struct):
    """A slot and the board that is in it, if any.

    `step` is where its run is, or ended; `began` and `seconds` are of the run, in monotonic
    seconds. `label` is what was scanned for this board, `uuid` what it said that it is. `mark`
    changes when another is plugged in, `boards` counts those that were taken out.
    """

    location: BoardLocation
    state: SlotState = SlotState.EMPTY
    step: str = ""
    began: float = 0.0
    seconds: float = 0.0
    outcome: Outcome | None = None
    label: str = ""
    uuid: str = ""
    mark: object = None
    boards: int = 0

    @property
    def key(self) -> str:
        """What the tray knows the slot by."""
        return key_of(self.location)

    @property
    def name(self) -> str:
        """The operator's name of the slot, or else the place on the hub, or the port."""
        return self.location.slot or self.location.usb_place or self.location.port

    def enter(self, event: SlotEvent) -> None:
        """Go on to the state that follows. Raises IllegalTransition where none does."""
        self.state = TRANSITIONS[self.state, event]
        if event is SlotEvent.LEAVE:
            self.boards += 1
            self.label = self.uuid = ""
        if event in {SlotEvent.LEAVE, SlotEvent.RETRY}:
            self.step, self.outcome = "", None


def key_of(location: BoardLocation) -> str:
    """Return the key of a slot: the place on the hub, whichever kit is there, or else the port."""
    by_place = not location.port or location.port.startswith("serial:")
    return (location.usb_place if by_place else "") or location.port


class Tray(Struct):
    """The slots by their keys; `known` ones are shown before a board is in them.

    `layout` is columns and rows as the tray lies on the table, None where nobody said.
    """

    layout: tuple[int, int] | None = None
    slots: dict[str, Slot] = field(default_factory=dict)

    def know(self, locations: Iterable[BoardLocation]) -> None:
        """Name slots whose boards may come later; without the name they are shown as they come."""
        for location in locations:
            self.slots.setdefault(key_of(location), Slot(location))

    def look(self, connected: Mapping[str, tuple[BoardLocation, object]]) -> Sequence[Slot]:
        """Take note of what is plugged in now, each with its mark; return the slots that filled.

        A board at work is looked at when its run has ended.
        """
        found = {key_of(location): (location, mark) for location, mark in connected.values()}
        for key, slot in self.slots.items():
            settled = slot.state not in {SlotState.EMPTY, SlotState.WORKING}
            if settled and (key not in found or found[key][1] != slot.mark):
                slot.enter(SlotEvent.LEAVE)
        came = []
        for key, (location, mark) in found.items():
            slot = self.slots.setdefault(key, Slot(location))
            if slot.state is SlotState.EMPTY:
                slot.location, slot.mark = location, mark
                slot.enter(SlotEvent.CONNECT)
                came.append(slot)
        return came

    def named(self, text: str) -> Slot | None:
        """Return the slot that a line names, in capitals or not where that is clear."""
        slots = self.slots.values()
        for same in (str, str.casefold):
            named = [
                slot
                for slot in slots
                if same(text) in {same(name) for name in (slot.location.slot, slot.key) if name}
            ]
            if len(named) == 1:
                return named[0]
        return None

    def waiting(self) -> Sequence[Slot]:
        """Return the slots whose boards may begin."""
        return [slot for slot in self.slots.values() if slot.state is SlotState.WAITING]

    def begin(self, location: BoardLocation, now: float) -> None:
        """Note that the run of a board begins."""
        slot = self.slots[key_of(location)]
        slot.enter(SlotEvent.BEGIN)
        slot.began = now

    def end(self, outcome: Outcome, now: float) -> Slot:
        """Note how the run of a board ended; return its slot."""
        slot = self.slots[key_of(outcome.location)]
        slot.enter(_END_OF.get(outcome.outcome, SlotEvent.FAIL))
        slot.step, slot.outcome, slot.seconds = outcome.step, outcome, now - slot.began
        slot.uuid = outcome.uuid or slot.uuid
        if outcome.reason_code == LabelTaken.kind:
            slot.label = ""  # it is another board's, or this board has another: scan it again
        if outcome.reason_code == BoardSwapped.kind:
            slot.label = slot.uuid = ""  # another board is there: they are of the one before it
        return slot

    def retry(self) -> Sequence[Slot]:
        """Have every board tried again that failed or was hindered; return their slots."""
        again = [slot for slot in self.ordered() if slot.state.may_be_tried_again]
        for slot in again:
            slot.enter(SlotEvent.RETRY)
        return again

    def ordered(self) -> Sequence[Slot]:
        """Return the slots in the order of their names: A2 before A10, 1-1.2 before 1-1.10."""
        return sorted(
            self.slots.values(), key=lambda slot: (_natural(slot.location.slot), _natural(slot.key))
        )

    def rows(self, columns: int) -> Sequence[Sequence[Slot]]:
        """Return the slots as they lie on the table, in rows of so many.

        With a layout in the order in which they were named, else in that of their names.
        """
        slots = list(self.slots.values()) if self.layout else self.ordered()
        return [slots[at : at + columns] for at in range(0, len(slots), columns)]

    def by_need(self) -> Sequence[Slot]:
        """Return the slots in the order in which they need a hand, then in that of their names."""
        urgency = list(SlotState)
        return sorted(self.ordered(), key=lambda slot: urgency.index(slot.state))

    def tally(self) -> Mapping[SlotState, int]:
        """Return how many slots are in each state, for the states that any is in, worst first."""
        counts = Counter(slot.state for slot in self.slots.values())
        return {state: counts[state] for state in SlotState if counts[state]}


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    parts = re.findall(r"\d+|\D+", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
