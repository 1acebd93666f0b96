"""The outbox's rows, and what of them is known without asking: how many wait where, their bytes.

One thread uses them, inside a transaction that its caller begins and commits
(`agent.outbox.outbox`). What a rolled-back transaction changed in memory is put
right by `load`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.outbox.schema import IN_DOUBT, INSERT, LAST_ID, PARKED, WAITING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


class Tables:
    """The tables behind one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._unwritten: list[tuple[Any, ...]] = []
        (self.id,) = connection.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
        self.taken: set[int] = set()
        """What is being sent: it is not to go."""
        self.load()

    @property
    def db(self) -> sqlite3.Connection:
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
        rows = self.db.execute(
            "SELECT device, kind, count(*), sum(length(body)), min(id) FROM items WHERE state = 0 "
            "GROUP BY device, kind"
        ).fetchall()
        self.waiting: Counter[tuple[str, str]] = Counter()
        """How many items wait of each lane: device and kind."""
        self.first: dict[tuple[str, str], int] = {}
        """No item of the lane waits before it."""
        self.size = 0
        """Bytes of all bodies."""
        for device, kind, count, size, first in rows:
            self.waiting[device, kind] = count
            self.first[device, kind] = first
            self.size += size
        parked = self.db.execute(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM items WHERE state = 1"
        ).fetchone()
        self.parked: int = parked[0]
        self.size += parked[1]
        self.held = self.waiting.total() + self.parked
        """How many items there are."""
        (newest,) = self.db.execute("SELECT coalesce(max(id), 0) FROM items").fetchone()
        row = self.db.execute("SELECT value FROM about WHERE name = ?", (LAST_ID,)).fetchone()
        self.last_id: int = max(newest, int(row[0]) if row else 0)
        self._ids_went = False
        self.in_doubt: dict[tuple[str, str], int] = {}
        """Lanes of which it is not known whether the last request arrived -> its last item."""
        for name, value in self.db.execute(
            "SELECT name, value FROM about WHERE name GLOB ?", (f"{IN_DOUBT}*",)
        ).fetchall():
            if isinstance(name, str) and str(value).isdecimal():  # else it is damaged
                kind, _, device = name.removeprefix(IN_DOUBT).partition(" ")
                self.in_doubt[device, kind] = int(value)
        self.counts: Counter[str] = Counter()
        """What the counters in the table grow by."""

    def insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take rows with the columns of `schema.INSERT`."""
        self._unwritten += rows
        for row in rows:
            lane = row[2], row[1]
            if not self.waiting[lane]:
                self.first[lane] = row[0]
            self.waiting[lane] += 1
            self.size += len(row[7])
        self.held += len(rows)

    def delete(self, ids: Sequence[int]) -> int:
        """Delete items; return how many there were."""
        gone = 0
        for number in ids:
            row = self.db.execute(
                "DELETE FROM items WHERE id = ? RETURNING device, kind, state, length(body)",
                (number,),
            ).fetchone()
            if row is None:
                continue
            gone += 1
            self._ids_went = True
            self.held -= 1
            device, kind, state, size = row
            self.size -= size
            if state == PARKED:
                self.parked -= 1
            else:
                self.waiting[device, kind] -= 1
        return gone

    def doubt(self, lane: tuple[str, str], last: int) -> None:
        """Remember that a request whose items end with `last` may or may not arrive."""
        if self.in_doubt.get(lane) != last:
            self.in_doubt[lane] = last
            name = f"{IN_DOUBT}{lane[1]} {lane[0]}"
            self.db.execute("INSERT OR REPLACE INTO about VALUES(?, ?)", (name, str(last)))

    def trust(self, ids: Sequence[int]) -> None:
        """Remember that the requests which end with one of `ids` have arrived."""
        for lane in [lane for lane, last in self.in_doubt.items() if last in ids]:
            del self.in_doubt[lane]
            name = f"{IN_DOUBT}{lane[1]} {lane[0]}"
            self.db.execute("DELETE FROM about WHERE name = ?", (name,))

    def park(self, ids: Sequence[int], reason: str) -> None:
        """Set items that wait aside."""
        for number in ids:
            row = self.db.execute(
                "UPDATE items SET state = ?, reason = ? WHERE id = ? AND state = ? "
                "RETURNING device, kind",
                (PARKED, reason[:500], number, WAITING),
            ).fetchone()
            if row is not None:
                self.waiting[row[0], row[1]] -= 1
                self.parked += 1

    def message(self, message: int) -> list[int]:
        """Return the ids of what waits of a message, in order."""
        return [
            number
            for (number,) in self.db.execute(
                "SELECT id FROM items WHERE id = ? AND state = 0 UNION ALL "
                "SELECT id FROM items WHERE message = ? AND message <> id AND state = 0 "
                "ORDER BY id",
                (message, message),
            )
        ]

    def end(self) -> None:
        """Write what is still in memory alone: before the commit."""
        self.save_counts()
        if self._ids_went:
            self._ids_went = False
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
