"""The outbox's tables: taking items, keeping within the quota, handing out and settling them.

One thread uses a store, inside a transaction that its caller begins and commits
(`agent.observability.outbox.writer`). What a rolled-back transaction changed in memory is put
right by `load`.

What goes first when room is needed, and is counted as `dropped` or `expired`:
1. what is older than `max_age_s`;
2. parked items, the oldest first;
3. waiting items, the oldest first and whole messages at a time: never a chunk from the middle,
   never the message that is still coming in, never what is being sent at the moment.
Below `min_free_bytes` of free disk nothing more is taken (`refused`), and what is there stays.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.observability.outbox.fingerprint import WINDOW_S, MessageTracker
from agent.observability.outbox.items import (
    Item,
    Kind,
    Listed,
    NewItem,
    OutboxFull,
    Receipt,
    Totals,
)
from agent.observability.outbox.schema import INSERT, LAST_ID, PARKED, WAITING, row_crc

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from agent.config.profile import Outbox as Limits

_CHUNK, _COREDUMP = Kind.CHUNK.value, Kind.COREDUMP.value
_PRUNE_EVERY_S = 60.0
_HEARD_AGAIN = 1000  # chunks: what a kit prints in seconds; a message beyond it is only not known


class _Incoming:
    """The messages of one device's chunks as they come in."""

    def __init__(self, device: str) -> None:
        self.device = device.encode()
        self.tracker = MessageTracker()
        self.message: int | None = None
        """The first id of the message that is open; None between messages."""


class Store:
    """The tables behind one connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path, limits: Limits) -> None:
        self._connection = connection
        self._unwritten: list[tuple[Any, ...]] = []
        self._folder = str(path.parent)
        self._limits = limits
        self._taken: set[int] = set()
        (self.id,) = connection.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
        self.load()

    def limit_to(self, limits: Limits) -> None:
        """Keep to other limits from the next item on."""
        self._limits = limits

    @property
    def _db(self) -> sqlite3.Connection:
        """The connection, once the rows that were taken are in its tables.

        So the rows of all callers that share a commit go in with one statement.
        """
        self._write()
        return self._connection

    def _write(self) -> None:
        if self._unwritten:
            rows, self._unwritten = self._unwritten, []
            self._connection.executemany(INSERT, rows)

    def load(self) -> None:
        """Read from the tables what is kept in memory; forget what a rollback undid."""
        self._unwritten = []
        rows = self._db.execute(
            "SELECT device, kind, count(*), sum(length(body)), min(id) FROM items WHERE state = 0 "
            "GROUP BY device, kind"
        ).fetchall()
        self._lanes: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], int] = {}  # no item of the lane waits before it
        self._size = 0
        for device, kind, count, size, first in rows:
            self._lanes[device, kind] = count
            self._first[device, kind] = first
            self._size += size
        parked = self._db.execute(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM items WHERE state = 1"
        ).fetchone()
        self._parked: int = parked[0]
        self._size += parked[1]
        self._held = self._lanes.total() + self._parked
        (newest,) = self._db.execute("SELECT coalesce(max(id), 0) FROM items").fetchone()
        row = self._db.execute("SELECT value FROM about WHERE name = ?", (LAST_ID,)).fetchone()
        self._last_id: int = max(newest, int(row[0]) if row else 0)
        self._ids_went = False
        self._counts: Counter[str] = Counter()
        self._pruned_at = float("-inf")
        self._free = 0
        self._incoming: dict[str, _Incoming] = {}
        self._seen: dict[bytes, float] = {}
        self._hear_again()

    def _hear_again(self) -> None:
        """Follow the newest chunks once more, to know what is open and what was just heard."""
        newest = self._db.execute(
            "SELECT id, device, added, body FROM items WHERE kind = ? ORDER BY id DESC LIMIT ?",
            (Kind.CHUNK.value, _HEARD_AGAIN),
        ).fetchall()
        for number, device, added, body in reversed(newest):
            mark = self._follow(device, body, number)[1]
            if mark is not None:
                self._seen[mark] = added

    def begin(self) -> None:
        """Look at what a transaction goes by: how much of the disk is free."""
        try:
            self._free = shutil.disk_usage(self._folder).free
        except OSError:
            self._free = 0  # gone or not readable: nothing is taken

    # Taking items

    def take(self, items: Sequence[NewItem], now: float) -> Receipt:
        """Insert `items` in order. Raises OutboxFull when one of them cannot be taken."""
        self._prune(now)
        # Before anything is remembered: what is not taken must not be known the next time.
        self._make_room(len(items), sum([len(item.body) for item in items]))
        rows: list[tuple[Any, ...]] = []
        recalled: list[int] = []
        added = float(now)
        for item in items:
            kind, device, body = item.kind.value, item.device, item.body
            # Most of what comes is a chunk without a key: nothing is looked up for it.
            if (item.key is not None or kind == _COREDUMP) and self._is_known(item, now):
                continue
            message = number = self._last_id + 1
            if kind == _CHUNK:
                placed = self._place(item, number, now, rows)
                if isinstance(placed, list):
                    recalled += placed
                    continue
                message = placed
            self._last_id = number
            captured = added if item.captured_s is None else float(item.captured_s)
            meta = json.dumps(dict(item.meta)) if item.meta else ""
            crc = row_crc(kind, device, captured, meta, body)
            rows.append((number, kind, device, message, captured, added, meta, body, crc))
        if recalled:
            gone = set(recalled)
            rows = [row for row in rows if row[0] not in gone]
            self._delete(recalled)
        self._unwritten += rows
        for row in rows:
            lane = row[2], row[1]
            if not self._lanes[lane]:
                self._first[lane] = row[0]
            self._lanes[lane] += 1
            self._size += len(row[7])
        self._held += len(rows)
        if duplicates := len(items) - len(rows):
            self._counts["duplicates"] += duplicates
        return Receipt(tuple([row[0] for row in rows]), duplicates)

    def _is_known(self, item: NewItem, now: float) -> bool:
        if item.key is not None:
            mark = b"key" + item.key.encode()
        else:
            import hashlib

            mark = b"core" + hashlib.sha256(item.body).digest() + item.device.encode()
        return self._recent(mark, now, self._limits.max_age_s)

    def _recent(self, mark: bytes, now: float, window_s: float) -> bool:
        """Tell whether `mark` was met within the window; remember that it was."""
        row = self._db.execute("SELECT at FROM recent WHERE mark = ?", (mark,)).fetchone()
        if row is not None and abs(now - row[0]) < window_s:
            return True
        self._db.execute("INSERT OR REPLACE INTO recent VALUES(?, ?)", (mark, float(now)))
        return False

    def _place(
        self, item: NewItem, number: int, now: float, rows: list[tuple[Any, ...]]
    ) -> int | list[int]:
        """Return the message of a chunk, or the ids to take back: its message came before."""
        message, mark = self._follow(item.device, item.body, number)
        if mark is not None:
            if abs(now - self._seen.get(mark, float("-inf"))) < WINDOW_S:
                return self._recall(message, number, rows)
            self._seen[mark] = now
        return message

    def _follow(self, device: str, chunk: bytes, number: int) -> tuple[int, bytes | None]:
        """Return the message that a chunk belongs to, and what marks it once it is whole."""
        incoming = self._incoming.get(device)
        if incoming is None:
            incoming = self._incoming[device] = _Incoming(device)
        place = incoming.tracker.take(chunk)
        if place.begins or incoming.message is None:
            incoming.message = number
        message = incoming.message
        if place.ends:
            incoming.message = None
        if place.fingerprint is None:
            return message, None
        return message, place.fingerprint + incoming.device

    def _recall(self, message: int, last: int, rows: list[tuple[Any, ...]]) -> int | list[int]:
        """Return the ids of a message that is a duplicate; the message if part of it is gone."""
        ids = self._message(message) + [row[0] for row in rows if row[3] == message]
        complete = message == last or ids[:1] == [message]
        return ids if complete and not self._taken.intersection(ids) else message

    def _make_room(self, count: int, size: int) -> None:
        limits = self._limits
        if size > limits.max_bytes or count > limits.max_items:
            raise OutboxFull(
                f"{size} bytes do not fit an outbox of {limits.max_bytes}",
                hint="raise outbox.max_bytes in the profile, or send it directly",
            )
        if self._free - size < limits.min_free_bytes:
            self._counts["refused"] += count
            raise OutboxFull(
                f"{self._free // 1024} KiB are free on the disk of {self._folder}: nothing more is "
                f"taken below {limits.min_free_bytes // 1024}",
                hint="free some space, or lower outbox.min_free_bytes in the profile",
            )
        while self._size + size > limits.max_bytes or self._held + count > limits.max_items:
            victims = self._oldest()
            if not victims:
                self._counts["refused"] += count
                raise OutboxFull("the outbox is full of what is being sent or still coming in")
            self._counts["dropped"] += len(victims)
            self._delete(victims)

    def _oldest(self) -> list[int]:
        """Return the ids that go first when room is needed."""
        row = self._db.execute(
            "SELECT id FROM items WHERE state = 1 ORDER BY id LIMIT 1"
        ).fetchone()
        if row is not None:
            return [row[0]]
        coming = {each.message for each in self._incoming.values() if each.message is not None}
        passed_over = 0
        for number, message in self._db.execute(
            "SELECT id, message FROM items WHERE state = 0 ORDER BY id"
        ):
            if number in self._taken or message in coming or message == passed_over:
                passed_over = message
                continue
            ids = self._message(message)
            if not self._taken.intersection(ids):
                return ids
            passed_over = message
        return []

    def _message(self, message: int) -> list[int]:
        """Return the ids of what waits of a message, in order."""
        return [
            number
            for (number,) in self._db.execute(
                "SELECT id FROM items WHERE id = ? AND state = 0 UNION ALL "
                "SELECT id FROM items WHERE message = ? AND message <> id AND state = 0 "
                "ORDER BY id",
                (message, message),
            )
        ]

    def _prune(self, now: float) -> None:
        if 0 <= now - self._pruned_at < _PRUNE_EVERY_S:
            return
        self._pruned_at = now
        limit = now - self._limits.max_age_s
        self._seen = {mark: at for mark, at in self._seen.items() if abs(now - at) < WINDOW_S}
        self._db.execute("DELETE FROM recent WHERE at < ? OR at > ?", (limit, now + 86400.0))
        old = [
            number
            for (number,) in self._db.execute("SELECT id FROM items WHERE added < ?", (limit,))
            if number not in self._taken
        ]
        self._counts["expired"] += len(old)
        self._delete(old)

    # Handing out and settling

    def lanes(self) -> list[tuple[str, Kind]]:
        """Return device and kind of everything that waits."""
        return [(device, Kind(kind)) for (device, kind), count in self._lanes.items() if count > 0]

    def hand_out(self, device: str, kind: Kind, max_items: int, max_bytes: int) -> list[Item]:
        """Return the next items of a lane in order, at least one; they are taken until settled."""
        found: list[Item] = []
        size = 0
        damaged: list[int] = []
        lane = device, kind.value
        for number, captured, refusals, meta, body, crc in self._db.execute(
            "SELECT id, captured, refusals, meta, body, crc FROM items "
            "WHERE id >= ? AND state = 0 AND device = ? AND kind = ? ORDER BY id LIMIT ?",
            (self._first.get(lane, 0), *lane, self._lanes[lane]),
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
                    f"{self.id}-{number}",
                )
            )
            if len(found) >= max_items:
                break
        if damaged:
            self._counts["unreadable"] += len(damaged)
            self._park(damaged, "its bytes were damaged on the disk")
        if found:
            self._first[lane] = found[0].id
        self._taken.update(item.id for item in found)
        return found

    def delivered(self, ids: Sequence[int]) -> None:
        """Delete what the service has taken."""
        self._taken.difference_update(ids)
        self._counts["delivered"] += self._delete(ids)

    def put_back(self, ids: Iterable[int]) -> None:
        """Let items wait again that were handed out."""
        self._taken.difference_update(ids)

    def put_back_all(self) -> None:
        """Let everything wait again that was handed out."""
        self._taken.clear()

    def refused(self, number: int, reason: str) -> bool:
        """Count a permanent refusal of one item; return whether it is parked now."""
        self._taken.discard(number)
        self._db.execute(
            "UPDATE items SET refusals = refusals + 1, reason = ? WHERE id = ?", (reason, number)
        )
        row = self._db.execute("SELECT refusals FROM items WHERE id = ?", (number,)).fetchone()
        if row is None or row[0] < self._limits.park_after:
            return False
        self._park([number], reason)
        return True

    def _park(self, ids: Sequence[int], reason: str) -> None:
        for number in ids:
            row = self._db.execute(
                "UPDATE items SET state = ?, reason = ? WHERE id = ? AND state = ? "
                "RETURNING device, kind",
                (PARKED, reason[:500], number, WAITING),
            ).fetchone()
            if row is not None:
                self._lanes[row[0], row[1]] -= 1
                self._parked += 1

    # For people

    def listed(self, limit: int = 1000) -> list[Listed]:
        """Return the oldest `limit` items, in order."""
        return [
            Listed(number, Kind(kind), device, size, captured, refusals, reason if state else "")
            for number, kind, device, size, captured, refusals, state, reason in self._db.execute(
                "SELECT id, kind, device, length(body), captured, refusals, state, reason "
                "FROM items ORDER BY id LIMIT ?",
                (limit,),
            )
        ]

    def totals(self) -> Totals:
        """Return how full the outbox is and what has become of what it took."""
        counts = Counter(dict(self._db.execute("SELECT name, value FROM counts").fetchall()))
        counts.update(self._counts)
        return Totals(self._lanes.total(), self._parked, self._size, dict(counts))

    def drop(self, ids: Sequence[int]) -> int:
        """Delete items as a person asked; return how many there were."""
        gone = self._delete([number for number in ids if number not in self._taken])
        self._counts["dropped"] += gone
        return gone

    def retry_parked(self) -> int:
        """Let everything that is parked wait again; return how many."""
        self._db.execute(
            "UPDATE items SET state = ?, refusals = 0, reason = '' WHERE state = ?",
            (WAITING, PARKED),
        )
        moved = self._parked
        self.save_counts()
        self.load()
        return moved

    def count(self, counts: Mapping[str, int]) -> None:
        """Add to the counters of `totals`."""
        self._counts.update(counts)

    def end(self) -> None:
        """Write what is still in memory alone; the writer calls it before it commits."""
        self.save_counts()
        if self._ids_went:
            self._ids_went = False
            last = str(self._last_id)
            self._connection.execute("INSERT OR REPLACE INTO about VALUES(?, ?)", (LAST_ID, last))
        self._write()

    def save_counts(self) -> None:
        """Write the counters that changed."""
        changed = [(name, value) for name, value in self._counts.items() if value]
        if changed:
            self._db.executemany(
                "INSERT INTO counts VALUES(?, ?) "
                "ON CONFLICT(name) DO UPDATE SET value = value + excluded.value",
                changed,
            )
            self._counts.clear()

    def _delete(self, ids: Sequence[int]) -> int:
        gone = 0
        for number in ids:
            row = self._db.execute(
                "DELETE FROM items WHERE id = ? RETURNING device, kind, state, length(body)",
                (number,),
            ).fetchone()
            if row is None:
                continue
            gone += 1
            self._ids_went = True
            self._held -= 1
            device, kind, state, size = row
            self._size -= size
            if state == PARKED:
                self._parked -= 1
            else:
                self._lanes[device, kind] -= 1
        return gone
