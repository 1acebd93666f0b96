"""The operations on the outbox: items are added, taken, settled, listed and dropped.

One thread uses a store, inside a transaction that its caller begins and commits
(`agent.outbox.outbox`).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from agent.config.profile import OutboxSettings
from agent.outbox.dedup import Deduplicator
from agent.outbox.item_state import ItemEvent
from agent.outbox.items import (
    Item,
    ItemKind,
    ListedItem,
    NewItem,
    OutboxTotals,
    Receipt,
    Selection,
)
from agent.outbox.quota import Quota
from agent.outbox.schema import LARGEST_INTEGER, Row, row_crc
from agent.outbox.tables import BootClock, OutboxTables

SMALLEST_STEP_S = 30.0
"""Less is drift, or a correction by the network."""
NOTHING_HELD: Mapping[tuple[str, ItemKind], Collection[int]] = {}
_EXPIRE_EVERY_S = 60.0
_CHUNK, _COREDUMP = ItemKind.CHUNK.value, ItemKind.COREDUMP.value


class Store:
    """The items behind one connection; `path` is its file."""

    def __init__(self, connection: sqlite3.Connection, path: Path, limits: OutboxSettings) -> None:
        self._limits = limits
        self.tables = OutboxTables(connection)
        self._dedup = Deduplicator(self.tables)
        self._quota = Quota(self.tables, path.parent)
        self._expired_at = float("-inf")

    def set_limits(self, limits: OutboxSettings) -> None:
        """Apply other limits from the next item on."""
        self._limits = limits

    def follow_clock(self, boot: str, offset_s: float) -> None:
        """Correct the times of items if the host's clock was set since they were added.

        `offset_s` is the time of the clock less the seconds since the `boot` of that name. Items of
        an earlier boot are left: its clock may have been right.
        """
        known = self.tables.clock
        if known is None or known.boot != boot:
            self.tables.set_clock(BootClock(boot, self.tables.last_id, offset_s))
        elif abs(step_s := offset_s - known.offset_s) > SMALLEST_STEP_S:
            self.tables.db.execute(
                "UPDATE items SET added = added + ? WHERE id > ?", (step_s, known.last_id_before)
            )
            self.tables.set_clock(known._replace(offset_s=offset_s))

    # Around a transaction

    def begin(self) -> None:
        """Prepare a transaction: read how much of the disk is free."""
        self.tables.begin()
        self._quota.measure_free_space()

    def flush(self) -> None:
        """Write what is still only in memory; the writer calls it before it commits."""
        self.tables.flush()

    def reload(self) -> None:
        """Read the state in memory again from the tables, after a rollback."""
        self.tables.reload()
        self._dedup.reload()
        self._expired_at = float("-inf")

    # Adding items

    def add(self, items: Sequence[NewItem], now: float) -> Receipt:
        """Insert `items` in order. Raises OutboxFull when one of them cannot be accepted."""
        tables, dedup, limits = self.tables, self._dedup, self._limits
        self._expire(now)
        # Before dedup remembers anything: an item refused here is no duplicate at the next try.
        size = sum([len(item.body) for item in items])
        self._quota.make_room(len(items), size, limits, dedup.open_messages)
        rows: list[Row] = []
        recalled: list[int] = []
        added = float(now)
        for item in items:
            kind, device, body = item.kind.value, item.device, item.body
            # Most of what comes is a chunk without a key: nothing is looked up for it.
            if (item.key is not None or kind == _COREDUMP) and dedup.is_duplicate(
                item, now, limits.max_age_s
            ):
                continue
            message = number = tables.last_id + 1
            if kind == _CHUNK:
                assigned = dedup.assign_message(item, number, now, rows)
                if isinstance(assigned, list):
                    recalled += assigned
                    continue
                message = assigned
            tables.last_id = number
            # SQLite keeps no negative zero: what is read back would not be what the CRC is over.
            captured = added if item.captured_s is None else float(item.captured_s) + 0.0
            meta = json.dumps(dict(item.meta)) if item.meta else ""
            crc = row_crc(kind, device, captured, meta, body)
            rows.append((number, kind, device, message, captured, added, meta, body, crc))
        if recalled:
            gone = set(recalled)
            rows = [row for row in rows if row[0] not in gone]
            tables.move(recalled, ItemEvent.REPEATED)
        tables.insert(rows)
        if duplicates := len(items) - len(rows):
            tables.counts["duplicates"] += duplicates
        return Receipt(tuple([row[0] for row in rows]), duplicates)

    def _expire(self, now: float) -> None:
        """Delete what is too old; at most once a minute."""
        if 0 <= now - self._expired_at < _EXPIRE_EVERY_S:
            return
        self._expired_at = now
        self._dedup.forget(now, self._limits.max_age_s)
        self._quota.expire(now, self._limits.max_age_s)

    # Taking and settling

    def lanes(
        self, held: Mapping[tuple[str, ItemKind], Collection[int]] = NOTHING_HELD
    ) -> dict[tuple[str, ItemKind], bool]:
        """Return device and kind of everything that waits: with whether it is more than `held`.

        `held` are messages by their numbers.
        """
        lanes = [(device, ItemKind(kind)) for (device, kind), n in self.tables.waiting.items() if n]
        return {lane: not held.get(lane) or self._holds_more(lane, held[lane]) for lane in lanes}

    def _holds_more(self, lane: tuple[str, ItemKind], held: Collection[int]) -> bool:
        rows = self.tables.db.execute(
            "SELECT message FROM items WHERE id >= ? AND state = 0 AND device = ? AND kind = ?",
            (self.tables.first_id.get((lane[0], lane[1].value), 0), lane[0], lane[1].value),
        )
        return any(message not in held for (message,) in rows)

    def take(
        self,
        device: str,
        kind: ItemKind,
        max_items: int,
        max_bytes: int,
        *,
        messages: int = 1 << 30,
        apart: Collection[int] = (),
        alone: Collection[int] = (),
    ) -> list[Item]:
        """Take the next waiting items of a lane, in order and at least one: they are in flight.

        What bounds a request is said at `Selection`.
        """
        tables = self.tables
        batch: list[Item] = []
        size = taken = 0
        damaged: list[int] = []
        lane = device, kind.value
        for number, message, captured, refusals, meta, body, crc in tables.db.execute(
            "SELECT id, message, captured, refusals, meta, body, crc FROM items "
            "WHERE id >= ? AND state = 0 AND device = ? AND kind = ? ORDER BY id LIMIT ?",
            (tables.first_id.get(lane, 0), *lane, tables.waiting[lane]),
        ):
            if number in tables.in_flight:
                continue
            if message in apart:
                if batch:
                    break
                continue
            if batch and message != batch[-1].message:
                if taken == messages or message in alone or batch[-1].message in alone:
                    break
                taken += 1
            if row_crc(kind.value, device, captured, meta, body) != crc:
                damaged.append(number)
                continue
            if batch and (len(batch) >= max_items or size + len(body) > max_bytes):
                break
            size += len(body)
            taken = max(taken, 1)
            batch.append(
                Item(
                    number,
                    kind,
                    device,
                    body,
                    captured,
                    refusals,
                    json.loads(meta) if meta else {},
                    f"{tables.id}-{number}",
                    message,
                )
            )
            if len(batch) >= max_items:
                break
        if damaged:
            tables.counts["unreadable"] += len(damaged)
            tables.move(damaged, ItemEvent.DAMAGED, "its bytes were damaged on the disk")
        if batch and not apart:
            tables.first_id[lane] = batch[0].id
        tables.move([item.id for item in batch], ItemEvent.TAKEN)
        return batch

    def next_batch(self, device: str, kind: ItemKind, selection: Selection) -> list[Item]:
        """Take what goes into the next request of a lane.

        If it is not known whether the last request arrived, also after a crash, these are the same
        items again and no more: the service recognises the request by its id.
        """
        items = self.take(
            device,
            kind,
            selection.items,
            selection.bytes,
            messages=selection.messages,
            apart=selection.apart,
            alone=selection.alone,
        )
        first, last = self.tables.in_doubt.get((device, kind.value), (1, 0))
        again = [item for item in items if first <= item.id <= last]
        if again:
            self.release([item.id for item in items if not first <= item.id <= last])
            items = again
        if items:
            self.tables.mark_in_doubt((device, kind.value), items[0].id, items[-1].id)
        return items

    def remove_delivered(self, ids: Sequence[int]) -> None:
        """Delete what the service has accepted."""
        self.tables.move(ids, ItemEvent.ACCEPTED)
        self.tables.clear_in_doubt(ids)

    def release(self, ids: Iterable[int]) -> None:
        """Release items that are in flight: they wait again."""
        self.tables.move(ids, ItemEvent.RELEASED)

    def release_all(self) -> None:
        """Release every item that is in flight."""
        self.release(list(self.tables.in_flight))

    def count_refusal(self, ids: Sequence[int], reason: str, *, at_fault: bool) -> bool:
        """Count a refusal of items of one message; return whether it is parked now.

        It is parked as a whole, and only if it is `at_fault`: the service took others since.
        """
        tables = self.tables
        for number in ids:
            tables.db.execute("UPDATE items SET refusals = refusals + 1 WHERE id = ?", (number,))
        row = tables.db.execute(
            "SELECT message, refusals FROM items WHERE id = ?", (ids[0],)
        ).fetchone()
        if at_fault and row is not None and row[1] >= self._limits.park_after:
            tables.move(tables.message_ids(row[0]), ItemEvent.GIVEN_UP, reason)
            return True
        tables.move(ids, ItemEvent.REFUSED)
        return False

    # For people

    def list_items(self, limit: int = 1000) -> list[ListedItem]:
        """Return the oldest `limit` items, in order."""
        return [
            ListedItem(
                number,
                ItemKind(kind),
                device,
                size,
                datetime.fromtimestamp(captured, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                refusals,
                reason if state else None,
            )
            for number, kind, device, size, captured, refusals, state, reason in (
                self.tables.db.execute(
                    "SELECT id, kind, device, length(body), captured, refusals, state, reason "
                    "FROM items ORDER BY id LIMIT ?",
                    (min(limit, LARGEST_INTEGER),),
                )
            )
        ]

    def totals(self) -> OutboxTotals:
        """Return how full the outbox is and what has become of its items."""
        tables = self.tables
        counts = Counter(dict(tables.db.execute("SELECT name, value FROM counts").fetchall()))
        counts.update(tables.counts)
        return OutboxTotals(tables.waiting.total(), tables.parked, tables.size, dict(counts))

    def drop(self, ids: Sequence[int]) -> int:
        """Delete items as a person asked, except those in flight; return how many."""
        free = self.tables.allowing(ItemEvent.REMOVED, ids)
        self.tables.move(free, ItemEvent.REMOVED)
        return len(free)

    def retry_parked(self) -> int:
        """Return all parked items to the waiting ones; return how many."""
        parked = self.tables.db.execute("SELECT id FROM items WHERE state = 1").fetchall()
        self.tables.move([row[0] for row in parked], ItemEvent.RETRIED)
        return len(parked)

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add to the counters of `totals`."""
        self.tables.counts.update(counts)
