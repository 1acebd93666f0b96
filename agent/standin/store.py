"""The store: tables of records, in memory and, on request, in a SQLite file.

Every record is in memory; the file is read once at the start, and written before an answer is sent.
There is one connection, and the file is 0600 from the moment it exists (`make_private`).
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

_APPLICATION_ID = 0x63656C6C  # "cell"
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS rows (name TEXT, key TEXT, value BLOB, PRIMARY KEY (name, key))"
)

# Not OR REPLACE: that would move a changed row to the end.
_UPSERT = (
    "INSERT INTO rows VALUES (?, ?, ?) ON CONFLICT (name, key) DO UPDATE SET value = excluded.value"
)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableOf(Generic[T]):
    """The name of a table, and the type of its records: what one is opened with.

    Tables of one kind, each of a project, have a name in which "*/*" stands for the project.
    """

    name: str
    type: type[T]

    def __post_init__(self) -> None:
        """Make the type known to stores that are opened later."""
        _KNOWN[self.name] = self


class Table(Generic[T]):
    """Key -> record, in the order of insertion.

    A record that is changed in place must be put again: only what is put reaches the file.
    """

    def __init__(self, name: str, of: type[T], changed: dict[str, AnyTable]) -> None:
        self._rows: dict[str, T] = {}
        self._name = name
        self._type = of
        self._changed = changed
        self.dirty: dict[str, bool] = {}
        """What was put or deleted, in the order of the puts; whether its row is not that of before
        any more: a key that is put again once it was deleted comes behind the others."""

    def load(self, rows: Mapping[str, object]) -> None:
        """Take the plain values of the file in place of what is here. Raises ValidationError."""
        self._rows = {
            key: cast("T", None) if value is None else msgspec.convert(value, self._type)
            for key, value in rows.items()
        }
        self.dirty.clear()

    def get(self, key: str) -> T | None:
        """Return the record, or None."""
        return self._rows.get(key)

    def __getitem__(self, key: str) -> T:
        """Return the record that is there."""
        return self._rows[key]

    def put(self, key: str, record: T) -> None:
        """Store `record` under `key`."""
        if key not in self._rows:
            self.dirty.pop(key, None)
            self.dirty[key] = True
        self.dirty.setdefault(key, False)
        self._rows[key] = record
        self._changed[self._name] = self

    def delete(self, key: str) -> None:
        """Delete `key`, if it is there."""
        self._rows.pop(key, None)
        self.dirty[key] = True
        self._changed[self._name] = self

    def next_number(self) -> int:
        """Return the number after that of the last key, for a table whose keys are numbers."""
        return int(next(reversed(self._rows), 0)) + 1

    def values(self) -> list[T]:
        """Return the records in the order of insertion, as a copy of the list."""
        return list(self._rows.values())

    def items(self) -> list[tuple[str, T]]:
        """Return pairs in the order of insertion, as a copy of the list."""
        return list(self._rows.items())

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)


AnyTable: TypeAlias = "Table[Any]"
_KNOWN: dict[str, TableOf[Any]] = {}


class NotWritten(OSError):
    """The state file takes no more; `errno` is that of a full disk, or of another error of it."""

    def __init__(self, path: Path, error: sqlite3.Error) -> None:
        super().__init__(errno.ENOSPC if _is_full(error) else errno.EIO, str(error), str(path))


class Store:
    """Named tables; without `path` they are in memory only.

    Raises ValueError if the file is another program's or in use, OSError if it cannot be opened,
    or the disk is full.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._tables: dict[str, AnyTable] = {}
        self._loaded: dict[str, dict[str, object]] = {}
        """Plain values of the file, by table, until the table is opened with its type."""
        self._changed: dict[str, AnyTable] = {}
        """The tables that changed since the last commit: most requests change none."""
        self.on_roll_back: Callable[[], None] = lambda: None
        """Called when the tables hold other records than before: what was made of them is stale."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        if path is not None:
            self._open(path)

    def table(self, of: TableOf[T], name: str = "") -> Table[T]:
        """Return a table, made empty where there is none; None is a record of any type.

        `name` is that of the one table, where `of` is that of many.
        """
        name = name or of.name
        found: Table[T] | None = self._tables.get(name)
        if found is None:
            found = Table(name, of.type, self._changed)
            found.load(self._loaded.get(name, {}))
            self._loaded.pop(name, None)
            self._tables[name] = found
        return found

    def commit(self) -> None:
        """Write what changed since the last commit; without a file, only clear the marks.

        Raises NotWritten if the file cannot be written: the tables are again what it holds, and
        `on_roll_back` was called. Who is told of a failure may send the same again.
        """
        if not self._changed:
            return
        if self._connection is not None and self._path is not None:
            try:
                with self._connection as connection:
                    for name, table in self._changed.items():
                        _write(connection, name, table)
            except sqlite3.Error as error:
                self._roll_back(self._connection)
                raise NotWritten(self._path, error) from error
        for table in self._changed.values():
            table.dirty.clear()
        self._changed.clear()

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        for name, table in self._changed.items():
            rows = connection.execute(
                "SELECT key, value FROM rows WHERE name = ? ORDER BY rowid", (name,)
            )
            table.load({key: msgspec.msgpack.decode(value) for key, value in rows})
        self._changed.clear()
        self.on_roll_back()

    def close(self) -> None:
        """Write what is left and close the file. Raises NotWritten."""
        try:
            self.commit()
        finally:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self, path: Path) -> None:
        # Checked before anything is written: --state may name any file by mistake.
        if path.exists() and not _is_ours(path):
            raise ValueError(f"{path} is no state file of the stand-in")
        make_private(path)
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(_SCHEMA)
            for name, key, value in connection.execute(
                "SELECT name, key, value FROM rows ORDER BY rowid"
            ):
                self._loaded.setdefault(name, {})[key] = msgspec.msgpack.decode(value)
        except (sqlite3.Error, msgspec.DecodeError) as error:
            connection.close()
            if isinstance(error, sqlite3.Error) and _is_full(error):
                raise NotWritten(path, error) from error
            raise ValueError(f"{path} cannot be used: {error}") from error
        self._connection = connection
        for name in list(self._loaded):
            first, last = name.split("/")[0], name.split("/")[-1]
            of = _KNOWN.get(name) or _KNOWN.get(f"{first}/*/*/{last}")
            try:
                if of is not None:
                    self.table(of, name)
            except msgspec.ValidationError as error:
                connection.close()
                raise ValueError(f"{path} cannot be used: in {name}, {error}") from error


def _write(connection: sqlite3.Connection, name: str, table: AnyTable) -> None:
    for key, is_another in table.dirty.items():
        if is_another:
            connection.execute("DELETE FROM rows WHERE name = ? AND key = ?", (name, key))
        if key in table:
            value = msgspec.msgpack.encode(table.get(key))
            connection.execute(_UPSERT, (name, key, value))


def _is_full(error: sqlite3.Error) -> bool:
    # An error of Python's module itself has no code.
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def _is_ours(path: Path) -> bool:
    """Return whether a file is empty or has our application id (SQLite file format, 1.3)."""
    with path.open("rb") as file:
        head = file.read(72)
    number = _APPLICATION_ID.to_bytes(4, "big")
    return not head or (head.startswith(b"SQLite format 3\0") and head[68:] == number)


def make_private(path: Path) -> None:
    """Make `path` 0600, an empty file if it is missing, and its folder 0700. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)  # one that was there before; Windows has no fchmod before Python 3.13
