"""What commands and the control socket ask of an outbox, with results as plain JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.outbox.outbox import Outbox
    from agent.outbox.store import Store

EVERYTHING = 1 << 40


async def list_items(outbox: Outbox, limit: int) -> dict[str, Any]:
    """Return what waits and what is parked, the oldest first, and the totals."""

    def query(store: Store) -> dict[str, Any]:
        items = [
            {
                "id": item.id,
                "kind": item.kind.value,
                "device": item.device,
                "bytes": item.size,
                "captured": datetime.fromtimestamp(item.captured_s, UTC).strftime(
                    "%Y-%m-%dT%H:%M:%SZ"
                ),
                "refusals": item.refusals,
                "parked": item.parked or None,
            }
            for item in store.list_items(limit)
        ]
        return {"items": items, "totals": _totals(store)}

    return await outbox.atransact(query)


async def drop_items(
    outbox: Outbox, ids: list[int], *, parked: bool, everything: bool
) -> dict[str, Any]:
    """Remove items for good; return how many. Raises UsageError unless one choice was made."""
    if sum(map(bool, (ids, parked, everything))) != 1:
        raise UsageError("name the items to drop, or --parked, or --all")

    def drop(store: Store) -> int:
        if ids:
            return store.drop(ids)
        listed = store.list_items(EVERYTHING)
        return store.drop([item.id for item in listed if everything or item.parked])

    return {"dropped": await outbox.atransact(drop)}


async def retry_items(outbox: Outbox, *, parked: bool) -> dict[str, Any]:
    """Return the totals; with `parked` all parked items wait again first."""

    def query(store: Store) -> dict[str, Any]:
        if parked:
            store.retry_parked()
        return {"totals": _totals(store)}

    return await outbox.atransact(query)


def _totals(store: Store) -> dict[str, Any]:
    totals = store.totals()
    return {
        "waiting": totals.waiting,
        "parked": totals.parked,
        "bytes": totals.size,
        "counts": dict(totals.counts),
    }
