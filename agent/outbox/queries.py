"""What commands and the control socket ask of an outbox; the results are what --json prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.errors import UsageError
from agent.outbox.items import ListedItem, OutboxTotals

if TYPE_CHECKING:
    from agent.outbox.outbox import Outbox
    from agent.outbox.store import Store

EVERYTHING = 1 << 40


class OutboxListing(msgspec.Struct, frozen=True):
    """What waits and what is parked."""

    items: list[ListedItem]
    totals: OutboxTotals


class OutboxDropped(msgspec.Struct, frozen=True):
    """How many items were removed."""

    dropped: int


class OutboxRetried(msgspec.Struct, frozen=True):
    """What waits now."""

    totals: OutboxTotals


Result = OutboxListing | OutboxDropped | OutboxRetried


async def list_items(outbox: Outbox, limit: int) -> OutboxListing:
    """Return what waits and what is parked, the oldest first, and the totals."""

    def query(store: Store) -> OutboxListing:
        return OutboxListing(store.list_items(limit), store.totals())

    return await outbox.atransact(query)


async def drop_items(
    outbox: Outbox, ids: list[int], *, parked: bool, everything: bool
) -> OutboxDropped:
    """Remove items for good; return how many. Raises UsageError unless one choice was made."""
    if sum(map(bool, (ids, parked, everything))) != 1:
        raise UsageError("name the items to drop, or --parked, or --all")

    def drop(store: Store) -> int:
        if ids:
            return store.drop(ids)
        listed = store.list_items(EVERYTHING)
        return store.drop([item.id for item in listed if everything or item.parked])

    return OutboxDropped(await outbox.atransact(drop))


async def retry_items(outbox: Outbox, *, parked: bool) -> OutboxRetried:
    """Return the totals; with `parked` all parked items wait again first."""

    def query(store: Store) -> OutboxRetried:
        if parked:
            store.retry_parked()
        return OutboxRetried(store.totals())

    return await outbox.atransact(query)
