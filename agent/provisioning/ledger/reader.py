"""Reads a ledger: its boards, keys, runs and steps, and what changed since."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

from agent.provisioning.ledger.backend import Database, Rows
from agent.provisioning.ledger.records import (
    BEGUN,
    FAILED,
    KEY_COLUMNS,
    BoardRecord,
    KeyRecord,
    Record,
    Registration,
    RunRecord,
    StepRecord,
)

R = TypeVar("R", bound=Record)

OF_THE_KEY = ("security_tag", *KEY_COLUMNS)
"""The columns of BoardRecord that stand in the table of the keys."""
OF_THE_BOARD = tuple(name for name in BoardRecord.__struct_fields__ if name not in OF_THE_KEY)
_TIMES = {"at", "made_at", "updated_at", "began_at", "ended_at", "retired_at"}
_PAGE = 500

# All names in statements are those of the records' fields; all values are bound.
_BOARD_COLUMNS = ", ".join(
    [f"boards.{name}" for name in OF_THE_BOARD]
    + ["keys.security_tag"]
    + [f"COALESCE(keys.{name}, '')" for name in KEY_COLUMNS]
)
_SELECT_BOARDS = (
    f"SELECT {_BOARD_COLUMNS} FROM boards LEFT JOIN keys ON keys.id = "  # noqa: S608
    "(SELECT max(id) FROM keys AS live WHERE live.uuid = boards.uuid AND live.retired_at IS NULL "
    "AND (CAST(:tag AS INTEGER) IS NULL OR live.security_tag = CAST(:tag AS INTEGER)))"
)


class BoardKnowledge(Struct, frozen=True):
    """What the ledger knows of a board, with its live key of a tag, and of a device id.

    `registrations` are those as the device that no other one has replaced, and `holders` the other
    boards that have them.
    """

    record: BoardRecord
    keys: Sequence[KeyRecord]
    runs: Sequence[RunRecord]
    steps: Sequence[StepRecord]
    registrations: Sequence[Registration]
    holders: Sequence[BoardRecord]


def unfinished(notes: Sequence[StepRecord], step: str) -> str | None:
    """Return, of a board's notes, the detail of a step that was begun and may have been done.

    A failure after the beginning leaves it open: what was sent may have arrived.
    """
    for note in reversed(notes):
        if note.step == step and note.state != FAILED:
            return note.detail if note.state == BEGUN else None
    return None


def _select(kind: type[Record], table: str) -> str:
    return f"SELECT {', '.join(kind.__struct_fields__)} FROM {table}"  # noqa: S608


_TABLES: Mapping[type, tuple[str, str]] = {
    BoardRecord: ("boards", _SELECT_BOARDS),
    KeyRecord: ("keys", _select(KeyRecord, "keys")),
    RunRecord: ("runs", _select(RunRecord, "runs")),
    StepRecord: ("steps", _select(StepRecord, "steps")),
}
_REGISTRATIONS = (
    "SELECT key, uuid, method, registrations.registered_at IS NOT NULL FROM registrations "
    "JOIN keys ON keys.id = registrations.key WHERE device_id = :device_id "
    "AND replaced_at IS NULL ORDER BY registrations.id"
)
_HOLDERS = (
    "WHERE boards.uuid <> :uuid AND boards.uuid IN (SELECT uuid FROM registrations "
    "JOIN keys ON keys.id = registrations.key WHERE device_id = :device_id "
    "AND replaced_at IS NULL) ORDER BY boards.uuid"
)
_NEWEST_CHANGES = " UNION ALL ".join(
    f"SELECT max(change) FROM {name}"  # noqa: S608
    for name, _ in _TABLES.values()
)


class LedgerReader:
    """An open ledger, to be read. Not for two threads.

    `older` is the version of the tables that were read, where that is not the newest one: what is
    read then is a copy as of the opening, and its numbers of changes are none to come back with.
    """

    def __init__(self, database: Database, older: str = "") -> None:
        self.older = older
        self._database = database

    @property
    def patience_s(self) -> float:
        """How long a call may take where the database is busy."""
        return self._database.patience_s

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def board(self, uuid: str, security_tag: int | None = None) -> BoardRecord | None:
        """Return the record of a board with its live key of a tag; None: that made last."""
        values = {"uuid": uuid, "tag": security_tag}
        found = self.select(BoardRecord, "WHERE boards.uuid = :uuid", values)
        return found[0] if found else None

    def labelled(self, label: str) -> BoardRecord | None:
        """Return the record of the board that has a label."""
        found = self.select(BoardRecord, "WHERE boards.label = :label", {"label": label})
        return found[0] if found else None

    def keys(self, uuid: str) -> Sequence[KeyRecord]:
        """Return the keys of a board in the order in which they were made, retired ones too."""
        return self.select(KeyRecord, "WHERE uuid = :uuid ORDER BY id", {"uuid": uuid})

    def runs(self, uuid: str) -> Sequence[RunRecord]:
        """Return the runs of a board in the order in which they came, whoever set a clock."""
        return self.select(RunRecord, "WHERE uuid = :uuid ORDER BY change", {"uuid": uuid})

    def steps(self, uuid: str) -> Sequence[StepRecord]:
        """Return the steps of a board in the order in which they were recorded."""
        return self.select(StepRecord, "WHERE uuid = :uuid ORDER BY id", {"uuid": uuid})

    def know(
        self, uuid: str, device_id: str, security_tag: int | None = None
    ) -> Callable[[], BoardKnowledge]:
        """Ask, in one message, what is known of a board and a device id; return how to know it.

        Its keys, its runs and its steps are in the order in which they came about.
        """
        values = {"uuid": uuid, "device_id": device_id, "tag": security_tag}
        with self._database.transaction():
            boards = self._ask(BoardRecord, "WHERE boards.uuid = :uuid", values)
            keys = self._ask(KeyRecord, "WHERE uuid = :uuid ORDER BY id", values)
            runs = self._ask(RunRecord, "WHERE uuid = :uuid ORDER BY change", values)
            steps = self._ask(StepRecord, "WHERE uuid = :uuid ORDER BY id", values)
            holders = self._ask(BoardRecord, _HOLDERS, values)
            rows = self.query(_REGISTRATIONS, {"device_id": device_id})

        def known() -> BoardKnowledge:
            [record] = boards() or [BoardRecord(uuid)]
            registrations = [
                Registration(key, uuid, method, bool(done)) for key, uuid, method, done in rows
            ]
            return BoardKnowledge(record, keys(), runs(), steps(), registrations, holders())

        return known

    def changes(
        self,
        since: int = 0,
        kinds: Sequence[type[Record]] = (BoardRecord, KeyRecord, RunRecord, StepRecord),
    ) -> Iterator[Record]:
        """Yield the records of these kinds that changed after the change `since`, in that order.

        Each comes once, as it is now, also where stations write meanwhile: a change that is not
        yet on disk, and every later one, waits for the next call. The largest `change` that came is
        what to begin with then. Read by pages, so that a ledger of any size needs little memory.
        """
        until = self._final()
        streams = [self._changes(kind, since, until) for kind in kinds]
        return heapq.merge(*streams, key=lambda record: record.change)

    def _changes(self, kind: type[Record], since: int, until: int) -> Iterator[Record]:
        table, _ = _TABLES[kind]
        where = (
            f"WHERE {table}.change > :since AND {table}.change <= :until "
            f"ORDER BY {table}.change LIMIT {_PAGE}"
        )
        while page := self.select(kind, where, {"since": since, "until": until, "tag": None}):
            yield from page
            since = page[-1].change

    def _final(self) -> int:
        """Return the last change before which every change is on disk, or never will be."""
        with self._database.transaction() as execute:
            newest = execute(_NEWEST_CHANGES, {})
            # Asked after that: whoever has a smaller number, and is not done, is seen here.
            is_open = self._database.first_open_change(execute)
        found = _largest(newest)
        return found if is_open is None else min(found, is_open)

    def select(self, kind: type[R], where: str, values: Mapping[str, object]) -> list[R]:
        """Return the records of a kind; `where` and all behind it is SQL, with `:names` of values.

        A board has its live key of the tag `tag`; None: that made last.
        """
        return self._ask(kind, where, values)()

    def query(self, statement: str, values: Mapping[str, object]) -> Rows:
        """Return the rows of a statement."""
        with self._database.transaction() as execute:
            return execute(statement, self._columns(values))

    def _columns(self, values: Mapping[str, object]) -> dict[str, object]:
        return {name: self._column(value) for name, value in values.items()}

    def _column(self, value: object) -> object:
        return self._database.time_in(value) if isinstance(value, datetime) else value

    def newest_change(self) -> int:
        """Return the number of the last change."""
        return _largest(self.query(_NEWEST_CHANGES, {}))

    def _ask(
        self, kind: type[R], where: str, values: Mapping[str, object]
    ) -> Callable[[], list[R]]:
        names = kind.__struct_fields__
        rows = self.query(f"{_TABLES[kind][1]} {where}", {"tag": None, **values})
        return lambda: [
            kind(**{name: self._value(name, value) for name, value in zip(names, row, strict=True)})
            for row in rows
        ]

    def _value(self, name: str, value: Any) -> Any:
        if name in _TIMES and value is not None:
            return self._database.time_out(value)
        return value


def _largest(rows: Rows) -> int:
    return max(int(number or 0) for (number,) in rows)
