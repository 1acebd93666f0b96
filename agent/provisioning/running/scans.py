"""What a scanner says at the bench: which slot, which label, and what is wrong with it. Pure.

A line is a slot's name or a label. A label goes to the slot that is expected: the one that was
scanned, else the first whose board waits for its label; where none waits, to the next board that is
plugged in, unless a slot is scanned before it comes. A line that is wrong, double or late changes
nothing.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from agent.provisioning.ledger import BoardRecord
from agent.provisioning.running.tray import Slot, SlotEvent, SlotState, Tray

RETRY = "r"
"""The key, and the line, that has boards tried again."""
LONGEST_LABEL = 64
"""Characters: what a column of the ledger holds."""


class Scan(Struct, frozen=True):
    """What became of a line: whether it was taken, and what is told. `slot` is the one it meant."""

    text: str
    taken: bool
    words: str
    slot: str = ""


class Scans:
    """The labels of a tray. `pattern` is what each must match, from end to end; "" is any text."""

    def __init__(self, tray: Tray, pattern: str = "") -> None:
        self._tray = tray
        self._pattern = re.compile(pattern) if pattern else None
        self._expected: Slot | None = None
        self._boards = 0  # that had left the expected slot
        self._chosen = False
        self._doubt = ""  # why nobody can tell whose the next label is
        self._refused = ""  # the label that was refused for it
        self._ahead = ""

    @property
    def prompt(self) -> str:
        """What is to be done next, without a full stop."""
        if self._expected is not None:
            return f"scan the label of {self._expected.name}{' twice' if self._doubt else ''}"
        if self._ahead:
            return f"plug in the board of label {self._ahead}, or scan a slot"
        failed = any(slot.state.may_be_tried_again for slot in self._tray.slots.values())
        again = f"; {RETRY} tries the failed again" if failed else ""
        return f"scan a slot, or the label of the next board{again}"

    def update(self, came: Sequence[Slot]) -> Scan | None:
        """Have the boards that have no label wait for theirs; `came` are those just plugged in.

        Returns what is to be told of a label that was scanned ahead.
        """
        bare = [slot for slot in self._tray.waiting() if not slot.label]
        for slot in bare:
            slot.enter(SlotEvent.ASK)
        told, new = None, [slot for slot in came if slot in bare]
        if self._ahead and new:
            label, self._ahead = self._ahead, ""
            if len(new) == 1:
                told = self._bind(new[0], label)
            else:
                names = " and ".join(slot.name for slot in new)
                self._doubt, self._refused = f"{names} came at once", label
                words = f"{self._doubt}: label {label} is bound to none of them. Scan a slot"
                told = Scan(label, taken=False, words=f"{words}, then its label")
        self._expect_next()
        return told

    def scan(self, text: str, holder: BoardRecord | None = None) -> Scan:
        """Take a line; `holder` is the board that has it as its label, by the ledger."""
        slot = self._tray.named(text)
        return self._label(text, holder) if slot is None else self._slot(text, slot)

    def _slot(self, text: str, slot: Slot) -> Scan:
        refusal = ""
        if slot.state in {SlotState.WORKING, SlotState.WAITING}:
            refusal = f"late: {slot.name} is at work"
        elif slot.state is SlotState.PASS:
            refusal = f"late: {slot.name} is done, with label {slot.label}; take it out"
        elif slot is self._expected and self._chosen:
            refusal = f"{slot.name} was scanned twice: scan its label"
        if refusal:
            return Scan(text, taken=False, words=refusal, slot=slot.name)
        self._doubt = self._refused = ""
        if slot.state.may_be_tried_again:
            slot.enter(SlotEvent.RETRY)
            if slot.label:
                return Scan(text, taken=True, words=f"{slot.name} is tried again", slot=slot.name)
            slot.enter(SlotEvent.ASK)
        self._expect(slot, chosen=True)
        freed, self._ahead = self._ahead, ""
        free = f"; {freed} is nobody's again" if freed else ""
        return Scan(text, taken=True, words=f"{slot.name}: scan its label{free}", slot=slot.name)

    def _label(self, text: str, holder: BoardRecord | None) -> Scan:
        slot = self._expected
        if refusal := self._refusal(text, slot, holder):
            return Scan(text, taken=False, words=refusal)
        if self._doubt and self._refused != text:
            # Who scans on without a look would give each board the label of the one before.
            self._refused = text
            words = f"{self._doubt}. Scan {text} once more, or a slot"
            return Scan(text, taken=False, words=words)
        self._doubt = self._refused = ""
        if slot is not None:
            return self._bind(slot, text)
        self._ahead = text
        return Scan(text, taken=True, words=f"label {text} goes to the next board")

    def _refusal(self, text: str, slot: Slot | None, holder: BoardRecord | None) -> str:
        """Return why a label is not taken, "" where it is."""
        if not text.isprintable():
            return "no label: it holds what cannot be printed"
        if "\ufffd" in text:  # in place of bytes: other labels would read the same
            return "no label: the scanner sends no UTF-8"
        if len(text) > LONGEST_LABEL:
            return f"no label: it is longer than {LONGEST_LABEL} characters"
        if self._pattern is not None and not self._pattern.fullmatch(text):
            return (
                f"{text} is no slot of this tray, and no label: those match "
                f"{self._pattern.pattern} (provisioning.label_pattern)"
            )
        for other in self._tray.slots.values():
            holds = holder is not None and other is not slot and other.uuid == holder.uuid
            if other.label == text or holds:
                return f"double: label {text} is that of the board in {other.name}"
        if text == self._ahead:
            return f"double: label {text} waits for the next board"
        if slot is None and self._ahead:
            return f"label {self._ahead} waits for the next board: plug it in first"
        if slot is not None and slot.uuid and holder is not None and holder.uuid != slot.uuid:
            return f"wrong: label {text} is that of board {holder.uuid}, which is not in this tray"
        return ""

    def _bind(self, slot: Slot, label: str) -> Scan:
        slot.label = label
        if slot.state is SlotState.UNLABELLED:
            slot.enter(SlotEvent.BIND)
        self._expected = None
        self._expect_next()
        return Scan(label, taken=True, words=f"{slot.name} has label {label}", slot=slot.name)

    def _expect(self, slot: Slot | None, *, chosen: bool) -> None:
        self._expected, self._chosen = slot, chosen
        self._boards = slot.boards if slot is not None else 0

    def _expect_next(self) -> None:
        """Keep to the slot that is expected, as people read it; without one take the first."""
        slot = self._expected
        if slot is not None and slot.boards == self._boards:
            return
        if slot is not None:
            self._doubt = f"late: the board in {slot.name} was taken out before its label came"
        waiting = (one for one in self._tray.ordered() if one.state is SlotState.UNLABELLED)
        self._expect(next(waiting, None), chosen=False)
