"""The rows of the outbox, with their counts and sizes by lane kept in memory.

One thread uses them, inside a transaction that its caller begins and commits
(`agent.outbox.outbox`). `reload` corrects the memory after a rollback.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from agent.outbox.item_state import TRANSITIONS, ItemEvent, ItemState
from agent.outbox.schema import CLOCK, IN_DOUBT, INSERT, LARGEST_INTEGER, LAST_ID, Row

_STORED = (ItemState.WAITING, ItemState.PARKED)
"""The states that a row can have in its column: each at the number that stands for it."""


class BootClock(NamedTuple):
    """The host's clock in the boot of this name, when an item was last added."""

    boot: str
    last_id_before: int
    """The last id that was given in an earlier boot."""
    offset_s: float
    """The time of the clock less the seconds since the boot."""


class OutboxTables:
    """The tables behind one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._unwritten: list[Row] = []
        (self.id,) = connection.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
        self.in_flight: set[int] = set()
        """The ids of what is in flight: only in memory, since it waits again after a crash."""
        self._in_flight_before: set[int] = set()
        self.reload()

    @property
    def db(self) -> sqlite3.Connection:
        """The connection, with all added rows written to its tables.

        Writing them this late lets all callers that share a commit share one statement.
        """
        self._write()
        return self._connection

    def _write(self) -> None:
        if self._unwritten:
            rows, self._unwritten = self._unwritten, []
            self._connection.executemany(INSERT, rows)

    def begin(self) -> None:
        """Remember what a rollback leads back to."""
        self._in_flight_before = self.in_flight.copy()

    def reload(self) -> None:
        """Read the counts from the tables again; rows that were not written are forgotten."""
        self._unwritten = []
        self.in_flight = self._in_flight_before.copy()
        rows = self.db.execute(
            "SELECT device, kind, count(*), sum(length(body)), min(id) FROM items WHERE state = 0 "
            "GROUP BY device, kind"
        ).fetchall()
        self.waiting: Counter[tuple[str, str]] = Counter()
        """Lane (device and kind) -> how many of its items wait."""
        self.first_id: dict[tuple[str, str], int] = {}
        """Lane -> an id before which none of its items waits."""
        self.size = 0
        """Bytes of all bodies."""
        for device, kind, count, size, first in rows:
            self.waiting[device, kind] = count
            self.first_id[device, kind] = first
            self.size += size
        parked = self.db.execute(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM items WHERE state = 1"
        ).fetchone()
        self.parked: int = parked[0]
        self.size += parked[1]
        self.total = self.waiting.total() + self.parked
        """How many items there are, waiting or parked."""
        (newest,) = self.db.execute("SELECT coalesce(max(id), 0) FROM items").fetchone()
        row = self.db.execute("SELECT value FROM about WHERE name = ?", (LAST_ID,)).fetchone()
        self.last_id: int = max(newest, int(row[0]) if row else 0)
        self._id_deleted = False
        self.in_doubt: dict[tuple[str, str], tuple[int, int]] = {}
        """Lane whose last request may or may not have arrived -> its first and its last item."""
        for name, value in self.db.execute(
            "SELECT name, value FROM about WHERE name GLOB ?", (f"{IN_DOUBT}*",)
        ).fetchall():
            numbers = [int(word) for word in str(value).split() if word.isdecimal()]
            if isinstance(name, str) and numbers:  # else it is damaged; one alone was the last
                kind, _, device = name.removeprefix(IN_DOUBT).partition(" ")
                self.in_doubt[device, kind] = (numbers[0] if numbers[1:] else 0), numbers[-1]
        row = self.db.execute("SELECT value FROM about WHERE name = ?", (CLOCK,)).fetchone()
        self.clock: BootClock | None = None
        if row is not None:
            with suppress(msgspec.DecodeError):  # it is damaged
                self.clock = msgspec.json.decode(row[0], type=BootClock)
        self.counts: Counter[str] = Counter()
        """By how much the counters in the table are to grow."""

    def insert(self, rows: Sequence[Row]) -> None:
        """Add rows with the columns of `schema.INSERT`."""
        self._unwritten += rows
        for row in rows:
            lane = row[2], row[1]
            if not self.waiting[lane]:
                self.first_id[lane] = row[0]
            self.waiting[lane] += 1
            self.size += len(row[7])
        self.total += len(rows)

    def state_of(self, number: int) -> ItemState | None:
        """Return the state of an item, None for one that is gone or never was."""
        if not 0 < number <= LARGEST_INTEGER:
            return None
        if number in self.in_flight:
            return ItemState.IN_FLIGHT
        row = self.db.execute("SELECT state FROM items WHERE id = ?", (number,)).fetchone()
        return row and _STORED[row[0]]

    def allowing(self, event: ItemEvent, ids: Iterable[int]) -> list[int]:
        """Return those of the items that `event` can happen to."""
        every = dict.fromkeys(ids)
        return [number for number in every if (self.state_of(number), event) in TRANSITIONS]

    def move(self, ids: Iterable[int], event: ItemEvent, reason: str = "") -> None:
        """Let `event` happen to items; what ends one is counted. `reason` is why one is parked."""
        for number in ids:
            before = self.state_of(number)
            if before is None:
                continue
            after = TRANSITIONS[before, event]
            self.in_flight.discard(number)
            if after is ItemState.IN_FLIGHT:
                self.in_flight.add(number)
            elif after not in _STORED:
                self._delete(number)
                self.counts[after.value] += 1
            elif ItemState.PARKED in {before, after}:
                self._store_state(number, after, reason)

    def _delete(self, number: int) -> None:
        device, kind, state, size = self.db.execute(
            "DELETE FROM items WHERE id = ? RETURNING device, kind, state, length(body)", (number,)
        ).fetchone()
        self._id_deleted = True
        self.total -= 1
        self.size -= size
        if _STORED[state] is ItemState.PARKED:
            self.parked -= 1
        else:
            self.waiting[device, kind] -= 1

    def _store_state(self, number: int, state: ItemState, reason: str) -> None:
        """Write that an item is parked, or that it waits again, its refusals forgotten."""
        parked = state is ItemState.PARKED
        device, kind = self.db.execute(
            "UPDATE items SET state = ?, refusals = refusals * ?, reason = ? WHERE id = ? "
            "RETURNING device, kind",
            (_STORED.index(state), parked, reason[:500], number),
        ).fetchone()
        change = 1 if parked else -1
        self.parked += change
        self.waiting[device, kind] -= change
        if not parked:
            self.first_id[device, kind] = min(number, self.first_id.get((device, kind), number))

    def mark_in_doubt(self, lane: tuple[str, str], first: int, last: int) -> None:
        """Record that a request from item `first` to `last` may or may not arrive."""
        if self.in_doubt.get(lane) != (first, last):
            self.in_doubt[lane] = first, last
            name = f"{IN_DOUBT}{lane[1]} {lane[0]}"
            value = f"{first} {last}"
            self.db.execute("INSERT OR REPLACE INTO about VALUES(?, ?)", (name, value))

    def set_clock(self, clock: BootClock) -> None:
        """Record how the host's clock stands."""
        self.clock = clock
        value = msgspec.json.encode(clock).decode()
        self.db.execute("INSERT OR REPLACE INTO about VALUES(?, ?)", (CLOCK, value))

    def clear_in_doubt(self, ids: Sequence[int]) -> None:
        """Record that the requests whose last item is one of `ids` have arrived."""
        for lane in [lane for lane, (_, last) in self.in_doubt.items() if last in ids]:
            del self.in_doubt[lane]
            name = f"{IN_DOUBT}{lane[1]} {lane[0]}"
            self.db.execute("DELETE FROM about WHERE name = ?", (name,))

    def message_ids(self, message: int) -> list[int]:
        """Return the ids of the waiting items of a message, in order."""
        return [
            number
            for (number,) in self.db.execute(
                "SELECT id FROM items WHERE id = ? AND state = 0 UNION ALL "
                "SELECT id FROM items WHERE message = ? AND message <> id AND state = 0 "
                "ORDER BY id",
                (message, message),
            )
        ]

    def flush(self) -> None:
        """Write what is still only in memory: before the commit."""
        self.save_counts()
        if self._id_deleted:
            self._id_deleted = False
            last = str(self.last_id)
            self._connection.execute("INSERT OR REPLACE INTO about VALUES(?, ?)", (LAST_ID, last))
        self._write()

    def save_counts(self) -> None:
        """Write the counters that changed."""
        changed = [(name, value) for name, value in self.counts.items() if value]
        if changed:
            self.db.executemany(
                "INSERT INTO counts VALUES(?, ?) "
                "ON CONFLICT(name) DO UPDATE SET value = value + excluded.value",
                changed,
            )
            self.counts.clear()
