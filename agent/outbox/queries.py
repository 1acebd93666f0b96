"""What may be asked of an outbox, as plain JSON: by a command, or of the agent that holds it."""

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

    def look(store: Store) -> dict[str, Any]:
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
            for item in store.listed(limit)
        ]
        return {"items": items, "totals": _totals(store)}

    return await outbox.ado(look)


async def drop_items(
    outbox: Outbox, ids: list[int], *, parked: bool, everything: bool
) -> dict[str, Any]:
    """Remove items for good; return how many. Raises UsageError unless one choice was made."""
    if sum(map(bool, (ids, parked, everything))) != 1:
        raise UsageError("name the items to drop, or --parked, or --all")

    def drop(store: Store) -> int:
        chosen = ids or [item.id for item in store.listed(EVERYTHING) if everything or item.parked]
        return store.drop(chosen)

    return {"dropped": await outbox.ado(drop)}


async def retry_items(outbox: Outbox, *, parked: bool) -> dict[str, Any]:
    """Let parked items be tried again, if asked to; return the totals."""

    def look(store: Store) -> dict[str, Any]:
        if parked:
            store.retry_parked()
        return {"totals": _totals(store)}

    return await outbox.ado(look)


def _totals(store: Store) -> dict[str, Any]:
    totals = store.totals()
    return {
        "waiting": totals.waiting,
        "parked": totals.parked,
        "bytes": totals.size,
        "counts": dict(totals.counts),
    }
