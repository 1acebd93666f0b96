"""What commands and the control socket ask of a store; the results are what --json prints."""

import msgspec

from agent.errors import UsageError
from agent.outbox.items import ListedItem, OutboxTotals
from agent.outbox.store import Store

EVERYTHING = 1 << 40


class OutboxListing(msgspec.Struct, frozen=True):
    """What waits and what is parked."""

    items: list[ListedItem]
    totals: OutboxTotals


class OutboxDropped(msgspec.Struct, frozen=True):
    """How many items were removed."""

    dropped: int
    sending: int
    """How many were not, as they are being sent just now."""


class OutboxRetried(msgspec.Struct, frozen=True):
    """What waits now."""

    totals: OutboxTotals


Result = OutboxListing | OutboxDropped | OutboxRetried


def list_items(store: Store, limit: int) -> OutboxListing:
    """Return what waits and what is parked, the oldest first, and the totals."""
    return OutboxListing(store.list_items(limit), store.totals())


def drop_items(store: Store, ids: list[int], *, parked: bool, everything: bool) -> OutboxDropped:
    """Remove items for good. Raises UsageError unless one choice was made, and for unknown ids."""
    if sum(map(bool, (ids, parked, everything))) != 1:
        raise UsageError("name the items to drop, or --parked, or --all")
    if unknown := [id_ for id_ in ids if store.index.state_of(id_) is None]:
        raise UsageError(
            f"the outbox has {' and '.join(f'no item {id_}' for id_ in unknown)}",
            hint="`cellagent outbox list` shows the ids; what was delivered has none",
        )
    listed = store.list_items(EVERYTHING) if parked or everything else []
    chosen = ids or [item.id for item in listed if everything or item.parked is not None]
    sending = len(store.index.in_flight.intersection(chosen))
    return OutboxDropped(store.drop(chosen), sending)


def retry_items(store: Store, *, parked: bool) -> OutboxRetried:
    """Return the totals; with `parked` all parked items wait again first."""
    if parked:
        store.retry_parked()
    return OutboxRetried(store.totals())
