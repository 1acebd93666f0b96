"""The states of an item of the outbox, whatever stores them. Pure."""

from __future__ import annotations

from enum import Enum

from at.protocol.state_machine import Transitions


class ItemState(Enum):
    """The state of an item; the value of a final one is the name of its count in the totals."""

    WAITING = "waiting"
    IN_FLIGHT = "in flight"
    PARKED = "parked"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    DROPPED = "dropped"
    DUPLICATE = "duplicates"


class ItemEvent(Enum):
    """An event in the life of an item."""

    TAKEN = "taken into a request"
    ACCEPTED = "accepted by the service"
    RELEASED = "released: its request failed through no fault of its own"
    REFUSED = "refused"
    GIVEN_UP = "refused, or its message, once too often by a service that took others"
    DAMAGED = "found damaged on the disk"
    RETRIED = "retried by a person"
    AGED = "older than max_age_s"
    REMOVED = "removed by a person, or to make room"
    REPEATED = "its message turns out to be a repeated one"


TRANSITIONS = Transitions(
    {
        (ItemState.WAITING, ItemEvent.TAKEN): ItemState.IN_FLIGHT,
        (ItemState.WAITING, ItemEvent.DAMAGED): ItemState.PARKED,
        (ItemState.WAITING, ItemEvent.GIVEN_UP): ItemState.PARKED,
        (ItemState.WAITING, ItemEvent.AGED): ItemState.EXPIRED,
        (ItemState.WAITING, ItemEvent.REMOVED): ItemState.DROPPED,
        (ItemState.WAITING, ItemEvent.REPEATED): ItemState.DUPLICATE,
        (ItemState.IN_FLIGHT, ItemEvent.ACCEPTED): ItemState.DELIVERED,
        (ItemState.IN_FLIGHT, ItemEvent.RELEASED): ItemState.WAITING,
        (ItemState.IN_FLIGHT, ItemEvent.REFUSED): ItemState.WAITING,
        (ItemState.IN_FLIGHT, ItemEvent.GIVEN_UP): ItemState.PARKED,
        (ItemState.PARKED, ItemEvent.RETRIED): ItemState.WAITING,
        (ItemState.PARKED, ItemEvent.AGED): ItemState.EXPIRED,
        (ItemState.PARKED, ItemEvent.REMOVED): ItemState.DROPPED,
    }
)
"""An item of the outbox. What is in flight when the process ends waits again at the next start."""
