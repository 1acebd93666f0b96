"""State machines as data: the states, the events, and one table of what follows. Pure.

    TRANSITIONS = Transitions({(State.IDLE, Event.SENT): State.WAITING, ...})
    state = TRANSITIONS[state, Event.SENT]

A machine begins in the state of its first row; a state without a row is final. The table stands
beside its enumerations, under a name that ends in TRANSITIONS: so scripts/states finds it, draws it
in docs/architecture.md and holds that a test fails if any row is changed.
"""

from enum import Enum
from typing import NoReturn, TypeVar

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)


class IdentityEnum(Enum):
    """An enumeration for the path of every line: its members are hashed by identity, at once."""

    __hash__ = object.__hash__


class IllegalTransition(AssertionError):
    """A defect of ours: an event that the table does not have in this state; nothing changed."""

    def __init__(self, state: Enum, event: Enum) -> None:
        machine = type(state).__name__
        super().__init__(
            f"{machine} {state.name} does not allow {type(event).__name__} {event.name}"
        )
        self.state = state
        self.event = event


class Transitions(dict[tuple[State, Event], State]):
    """The table of a machine: (state, event) -> the next state. Raises IllegalTransition."""

    def __missing__(self, key: tuple[State, Event]) -> NoReturn:
        raise IllegalTransition(*key)
