"""What is done with the outbox: items are taken, handed out and settled, listed and dropped.

One thread uses a store, inside a transaction that its caller begins and commits
(`agent.outbox.outbox`).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.outbox.dedup import Deduplicator
from agent.outbox.items import Item, ItemKind, ItemSummary, NewItem, OutboxTotals, Receipt
from agent.outbox.quota import Quota
from agent.outbox.schema import PARKED, WAITING, row_crc
from agent.outbox.tables import Tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from agent.config.profile import OutboxSettings as Limits

_CHUNK, _COREDUMP = ItemKind.CHUNK.value, ItemKind.COREDUMP.value


class Store:
    """The items behind one connection; `path` is its file."""

    def __init__(self, connection: sqlite3.Connection, path: Path, limits: Limits) -> None:
        self._limits = limits
        self.tables = Tables(connection)
        self._earlier = self.tables.last_id
        self._arrivals = Deduplicator(self.tables, limits)
        self._room = Quota(self.tables, self._arrivals, path.parent, limits)

    def limit_to(self, limits: Limits) -> None:
        """Keep to other limits from the next item on."""
        self._limits = self._arrivals.limits = self._room.limits = limits

    def clock_was_set(self, step_s: float) -> None:
        """Go by the clock as it is now: a host without one of its own is told the time late.

        What an earlier process took may have been taken by the right time, and is left.
        """
        self.tables.db.execute(
            "UPDATE items SET added = added + ? WHERE id > ?", (step_s, self._earlier)
        )

    # Around a transaction

    def load(self) -> None:
        """Read again what is kept in memory; forget what a rollback undid."""
        self.tables.load()
        self._arrivals.load()
        self._room.load()

    def begin(self) -> None:
        """Look at what a transaction goes by: how much of the disk is free."""
        self._room.look()

    def end(self) -> None:
        """Write what is still in memory alone; the writer calls it before it commits."""
        self.tables.end()

    # Taking items

    def take(self, items: Sequence[NewItem], now: float) -> Receipt:
        """Insert `items` in order. Raises OutboxFull when one of them cannot be taken."""
        tables, arrivals = self.tables, self._arrivals
        self._room.prune(now)
        # Before anything is remembered: what is not taken must not be known the next time.
        self._room.make(len(items), sum([len(item.body) for item in items]))
        rows: list[tuple[Any, ...]] = []
        recalled: list[int] = []
        added = float(now)
        for item in items:
            kind, device, body = item.kind.value, item.device, item.body
            # Most of what comes is a chunk without a key: nothing is looked up for it.
            if (item.key is not None or kind == _COREDUMP) and arrivals.is_known(item, now):
                continue
            message = number = tables.last_id + 1
            if kind == _CHUNK:
                placed = arrivals.place(item, number, now, rows)
                if isinstance(placed, list):
                    recalled += placed
                    continue
                message = placed
            tables.last_id = number
            captured = added if item.captured_s is None else float(item.captured_s)
            meta = json.dumps(dict(item.meta)) if item.meta else ""
            crc = row_crc(kind, device, captured, meta, body)
            rows.append((number, kind, device, message, captured, added, meta, body, crc))
        if recalled:
            gone = set(recalled)
            rows = [row for row in rows if row[0] not in gone]
            tables.delete(recalled)
        tables.insert(rows)
        if duplicates := len(items) - len(rows):
            tables.counts["duplicates"] += duplicates
        return Receipt(tuple([row[0] for row in rows]), duplicates)

    # Handing out and settling

    def lanes(self) -> list[tuple[str, ItemKind]]:
        """Return device and kind of everything that waits."""
        waiting = self.tables.waiting
        return [(device, ItemKind(kind)) for (device, kind), count in waiting.items() if count > 0]

    def hand_out(self, device: str, kind: ItemKind, max_items: int, max_bytes: int) -> list[Item]:
        """Return the next items of a lane in order, at least one; they are taken until settled."""
        tables = self.tables
        found: list[Item] = []
        size = 0
        damaged: list[int] = []
        lane = device, kind.value
        for number, captured, refusals, meta, body, crc in tables.db.execute(
            "SELECT id, captured, refusals, meta, body, crc FROM items "
            "WHERE id >= ? AND state = 0 AND device = ? AND kind = ? ORDER BY id LIMIT ?",
            (tables.first.get(lane, 0), *lane, tables.waiting[lane]),
        ):
            if row_crc(kind.value, device, captured, meta, body) != crc:
                damaged.append(number)
                continue
            if found and (len(found) >= max_items or size + len(body) > max_bytes):
                break
            size += len(body)
            found.append(
                Item(
                    number,
                    kind,
                    device,
                    body,
                    captured,
                    refusals,
                    json.loads(meta) if meta else {},
                    f"{tables.id}-{number}",
                )
            )
            if len(found) >= max_items:
                break
        if damaged:
            tables.counts["unreadable"] += len(damaged)
            tables.park(damaged, "its bytes were damaged on the disk")
        if found:
            tables.first[lane] = found[0].id
        tables.taken.update(item.id for item in found)
        return found

    def next_batch(self, device: str, kind: ItemKind, max_items: int, max_bytes: int) -> list[Item]:
        """Hand out what goes into the next request of a lane.

        Where nobody knows whether the last one arrived, the same items again and no more, after a
        crash too: so that the service can tell by its id that it has them.
        """
        items = self.hand_out(device, kind, max_items, max_bytes)
        last = self.tables.in_doubt.get((device, kind.value))
        again = [item for item in items if last is not None and item.id <= last]
        if again:
            self.put_back([item.id for item in items[len(again) :]])
            items = again
        if items:
            self.tables.doubt((device, kind.value), items[-1].id)
        return items

    def delivered(self, ids: Sequence[int]) -> None:
        """Delete what the service has taken."""
        self.tables.taken.difference_update(ids)
        self.tables.counts["delivered"] += self.tables.delete(ids)
        self.tables.trust(ids)

    def put_back(self, ids: Iterable[int]) -> None:
        """Let items wait again that were handed out."""
        self.tables.taken.difference_update(ids)

    def put_back_all(self) -> None:
        """Let everything wait again that was handed out."""
        self.tables.taken.clear()

    def refused(self, number: int, reason: str) -> bool:
        """Count a permanent refusal of one item; return whether it is parked now."""
        db = self.tables.db
        self.tables.taken.discard(number)
        db.execute(
            "UPDATE items SET refusals = refusals + 1, reason = ? WHERE id = ?", (reason, number)
        )
        row = db.execute("SELECT refusals FROM items WHERE id = ?", (number,)).fetchone()
        if row is None or row[0] < self._limits.park_after:
            return False
        self.tables.park([number], reason)
        return True

    # For people

    def listed(self, limit: int = 1000) -> list[ItemSummary]:
        """Return the oldest `limit` items, in order."""
        return [
            ItemSummary(
                number, ItemKind(kind), device, size, captured, refusals, reason if state else ""
            )
            for number, kind, device, size, captured, refusals, state, reason in (
                self.tables.db.execute(
                    "SELECT id, kind, device, length(body), captured, refusals, state, reason "
                    "FROM items ORDER BY id LIMIT ?",
                    (limit,),
                )
            )
        ]

    def totals(self) -> OutboxTotals:
        """Return how full the outbox is and what has become of what it took."""
        tables = self.tables
        counts = Counter(dict(tables.db.execute("SELECT name, value FROM counts").fetchall()))
        counts.update(tables.counts)
        return OutboxTotals(tables.waiting.total(), tables.parked, tables.size, dict(counts))

    def drop(self, ids: Sequence[int]) -> int:
        """Delete items as a person asked; return how many there were."""
        gone = self.tables.delete([number for number in ids if number not in self.tables.taken])
        self.tables.counts["dropped"] += gone
        return gone

    def retry_parked(self) -> int:
        """Let everything that is parked wait again; return how many."""
        self.tables.db.execute(
            "UPDATE items SET state = ?, refusals = 0, reason = '' WHERE state = ?",
            (WAITING, PARKED),
        )
        moved = self.tables.parked
        self.tables.save_counts()
        self.load()
        return moved

    def count(self, counts: Mapping[str, int]) -> None:
        """Add to the counters of `totals`."""
        self.tables.counts.update(counts)
