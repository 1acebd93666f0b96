"""How far the run of a board has come: what its record may be told next. Pure."""

from enum import Enum

from at.protocol.state_machine import Transitions


class RunState(Enum):
    """How far a run has come; what it ends as follows from where it was."""

    OPENED = "opened"
    IDENTIFIED = "identified"
    CLAIMED = "claimed"
    CHANGED = "changed"
    REGISTERED = "registered"
    ENDED = "ended"

    @property
    def is_claimed(self) -> bool:
        """Whether this station has the board, and the ledger takes notes about it."""
        return (self, RunEvent.NOTE) in TRANSITIONS

    @property
    def has_changed(self) -> bool:
        """Whether the run has changed what it found: it is done then, else unchanged."""
        return self in {RunState.CHANGED, RunState.REGISTERED}


class RunEvent(Enum):
    """An event in the run of a board."""

    IDENTIFY = "the board says who it is"
    CLAIM = "the ledger gives it to this station"
    NOTE = "a step is noted"
    WRITE = "a credential is about to be written"
    REGISTER = "its key is registered"
    END = "the run has its outcome"


TRANSITIONS = Transitions(
    {
        (RunState.OPENED, RunEvent.IDENTIFY): RunState.IDENTIFIED,
        (RunState.OPENED, RunEvent.END): RunState.ENDED,
        (RunState.IDENTIFIED, RunEvent.CLAIM): RunState.CLAIMED,
        (RunState.IDENTIFIED, RunEvent.END): RunState.ENDED,
        (RunState.CLAIMED, RunEvent.NOTE): RunState.CLAIMED,
        (RunState.CLAIMED, RunEvent.WRITE): RunState.CHANGED,
        (RunState.CLAIMED, RunEvent.REGISTER): RunState.REGISTERED,
        (RunState.CLAIMED, RunEvent.END): RunState.ENDED,
        (RunState.CHANGED, RunEvent.NOTE): RunState.CHANGED,
        (RunState.CHANGED, RunEvent.WRITE): RunState.CHANGED,
        (RunState.CHANGED, RunEvent.REGISTER): RunState.REGISTERED,
        (RunState.CHANGED, RunEvent.END): RunState.ENDED,
        (RunState.REGISTERED, RunEvent.NOTE): RunState.REGISTERED,
        (RunState.REGISTERED, RunEvent.END): RunState.ENDED,
        (RunState.ENDED, RunEvent.END): RunState.ENDED,
    }
)
"""The run of one board at the bench. A key is registered once, after the last write; a port that
cannot be closed after the end changes no outcome."""
