from __future__ import annotations

from enum import Enum

import pytest

from at.protocol.state_machine import IllegalTransition, Transitions


class Door(Enum):
    OPEN = "open"
    CLOSED = "closed"


class Act(Enum):
    CLOSE = "close"


def test_what_the_table_does_not_have_raises_and_names_machine_state_and_event() -> None:
    transitions = Transitions({(Door.OPEN, Act.CLOSE): Door.CLOSED})
    assert transitions[Door.OPEN, Act.CLOSE] is Door.CLOSED
    with pytest.raises(IllegalTransition) as error:
        transitions[Door.CLOSED, Act.CLOSE]
    assert str(error.value) == "Door CLOSED does not allow Act CLOSE"
    assert (error.value.state, error.value.event) == (Door.CLOSED, Act.CLOSE)
    assert transitions == {(Door.OPEN, Act.CLOSE): Door.CLOSED}
