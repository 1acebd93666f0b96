"""The outbox's file: how it is opened, checked, set aside when damaged, and salvaged."""

from __future__ import annotations

import os
import re
import sqlite3
import uuid
import zlib
from typing import TYPE_CHECKING, Any

from agent.config.private_files import sync_folder, touch_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 2
WAITING, PARKED = 0, 1

# Each page that a commit touches is written and synced: an item is one row, in no index while it
# waits, and the last number is written only when its item goes (`LAST_ID` in `about`).
_SCHEMA = """
CREATE TABLE items(
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    device TEXT NOT NULL,
    message INTEGER NOT NULL,
    captured REAL NOT NULL,
    added REAL NOT NULL,
    meta TEXT NOT NULL,
    body BLOB NOT NULL,
    crc INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX parked ON items(id) WHERE state = 1;
CREATE INDEX continuations ON items(message) WHERE message <> id;
CREATE TABLE recent(mark BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE counts(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
# What damage within a row can look like that leaves the tree of the table sound.
_STRANGE = """
SELECT (SELECT count(*) FROM items WHERE kind NOT IN ('chunk', 'event', 'coredump')
    OR typeof(device) <> 'text' OR typeof(message) <> 'integer' OR typeof(added) <> 'real'
    OR typeof(captured) <> 'real' OR typeof(meta) <> 'text' OR typeof(body) <> 'blob'
    OR typeof(crc) <> 'integer' OR state NOT IN (0, 1) OR typeof(refusals) <> 'integer'
    OR typeof(reason) <> 'text' OR id < 1)
    + (SELECT count(*) FROM counts WHERE typeof(value) <> 'integer' OR typeof(name) <> 'text')
    + (SELECT count(*) FROM recent WHERE typeof(at) <> 'real')
"""
INSERT = (
    "INSERT INTO items(id, kind, device, message, captured, added, meta, body, crc) "
    "VALUES(?,?,?,?,?,?,?,?,?)"
)
LAST_ID = "last id"
"""The name in `about` of the highest number that was ever given: none is given twice."""
IN_DOUBT = "in doubt "
"""What a name in `about` begins with, before kind and device: the last item of a request of which
nobody knows whether it arrived."""
COLUMNS = "id, kind, device, message, captured, added, meta, body, crc"
_NUMBER = re.compile(r"[0-9]{1,18}")
# One connection by construction (SQLite before 3.51.3 has a race between two); the WAL is
# synced at each commit, and never shared.
_SETTINGS = (
    "PRAGMA auto_vacuum=INCREMENTAL",
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=1",
    "PRAGMA checkpoint_fullfsync=1",
    "PRAGMA temp_store=MEMORY",
)


def open_file(path: Path, now: float) -> tuple[sqlite3.Connection, int]:
    """Open the outbox at `path`, making it and its folder; return it and how many were salvaged.

    A damaged file is set aside beside it and what can be read of it goes into a new one; -1
    salvaged means that nothing was damaged. The caller holds the lock.
    """
    # The damaged file has this name until all that can be read of it is in the new one, synced: if
    # a start is killed, or has no room, the next start continues the salvage.
    damaged = path.with_name(f"{path.name}.salvaging")
    if not damaged.exists():
        connection = _sound_file(path)
        if connection is not None:
            return connection, -1
    # The file is renamed before its parts: until there is a new one, they can only be its own.
    if not damaged.exists() or not path.exists():
        _rename(path, damaged, _PARTS)
    connection = _connect(path)
    try:
        salvaged = _salvage(damaged, connection)
        _set_aside(damaged, path, now)
    except BaseException:
        _close(connection)
        raise
    return connection, salvaged


def _sound_file(path: Path) -> sqlite3.Connection | None:
    """Open the file, None if it is damaged. Raises sqlite3.Error, OSError for any other trouble."""
    connection: sqlite3.Connection | None = None
    try:
        connection = _connect(path)
        _check(connection)
    except _DAMAGE as exc:
        if connection is not None:
            _close(connection)
        if not _is_damage(exc, path):
            raise
        return None
    return connection


class _Unsound(Exception):
    """The file opens, yet is not what it must be."""


# A damaged schema gives error messages that are no UTF-8, and sizes beyond any memory.
_DAMAGE = (sqlite3.DatabaseError, _Unsound, UnicodeDecodeError, OverflowError, MemoryError)
_NOT_THE_FILE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
}


def _is_damage(error: Exception, path: Path) -> bool:
    """Return whether the file is damaged; not if the disk is full, gone or not writable."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return True
    if code & 0xFF == sqlite3.SQLITE_READONLY:
        return os.access(path, os.W_OK)  # a damaged header, too, makes a file read-only
    return code & 0xFF not in _NOT_THE_FILE


def _connect(path: Path) -> sqlite3.Connection:
    # SQLite would make the file with the mode that the umask leaves; it copies the mode to the
    # files beside it.
    new = not path.exists() or path.stat().st_size == 0
    touch_private(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for setting in _SETTINGS:
            connection.execute(setting)
        if new:
            connection.executescript("BEGIN EXCLUSIVE;" + _SCHEMA)
            connection.execute("INSERT INTO about VALUES('id', ?)", (uuid.uuid4().hex,))
            connection.execute(f"PRAGMA user_version={FORMAT}")
            connection.execute("COMMIT")
            sync_folder(path.parent)
    except BaseException:
        _close(connection)
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise _Unsound(f"format {version}")
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise _Unsound(found)
    name = connection.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
    if name is None or not isinstance(name[0], str):
        raise _Unsound("no id")
    (strange,) = connection.execute(_STRANGE).fetchone()
    if strange:
        raise _Unsound(f"{strange} rows are of another shape")
    last = connection.execute("SELECT value FROM about WHERE name = ?", (LAST_ID,)).fetchone()
    if last is not None and not (isinstance(last[0], str) and _NUMBER.fullmatch(last[0])):
        raise _Unsound("the last id is no number")
    connection.execute("SELECT DISTINCT device FROM items").fetchall()
    connection.execute("SELECT name, value FROM counts").fetchall()
    connection.execute("SELECT mark, at FROM recent LIMIT 1").fetchall()


def row_crc(kind: str, device: str, captured: float, meta: str, body: bytes) -> int:
    """Return the CRC-32 of a row's content: each reader compares it with the stored one."""
    return zlib.crc32(body, zlib.crc32(f"{kind}\n{device}\n{captured!r}\n{meta}".encode()))


def _set_aside(damaged: Path, path: Path, now: float) -> None:
    """Rename the damaged file, of which nothing more is needed, so that a person can look at it."""
    stem = f"{path.name}.damaged-{int(now)}"
    number = 0
    while (aside := path.with_name(f"{stem}.{number}" if number else stem)).exists():
        number += 1
    # The file is renamed last: no part of it is left beside the next damaged one.
    _rename(damaged, aside, _PARTS[::-1])


_PARTS = ("", "-wal", "-shm", "-journal")


def _rename(path: Path, new: Path, suffixes: tuple[str, ...]) -> None:
    """Rename the file and what belongs to it in this order, as far as they are there."""
    for suffix in suffixes:
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(new.with_name(new.name + suffix))
    sync_folder(path.parent)


def _salvage(damaged: Path, connection: sqlite3.Connection) -> int:
    """Copy the rows that can be read and whose body is sound; return how many."""
    rows: dict[int, tuple[Any, ...]] = {}
    for row in _readable_rows(damaged):
        if _sound(row):
            rows.setdefault(row[0], row)
    kept = [rows[number] for number in sorted(rows)]
    connection.execute("BEGIN IMMEDIATE")
    # An earlier start may have come as far as this.
    connection.executemany(INSERT.replace("INSERT", "INSERT OR IGNORE", 1), kept)
    connection.execute("COMMIT")
    return len(kept)


def _readable_rows(damaged: Path) -> Iterator[tuple[Any, ...]]:
    """Yield rows from both ends: a damaged page stops each walk, and hides only what it holds."""
    for order in ("ASC", "DESC"):
        try:
            # Read and write: without it the WAL, where the newest rows are, is not read.
            source = sqlite3.connect(damaged, isolation_level=None)
        except sqlite3.Error:
            return
        try:
            source.execute("PRAGMA locking_mode=EXCLUSIVE")
            source.execute("PRAGMA cell_size_check=1")
            source.text_factory = bytes
            for row in source.execute(
                f"SELECT {COLUMNS} FROM items NOT INDEXED ORDER BY id {order}"  # noqa: S608 - constants
            ):
                yield tuple(_text(value, at) for at, value in enumerate(row))
        except _DAMAGE:
            continue
        finally:
            _close(source)


_BODY_AT = COLUMNS.split(", ").index("body")


def _text(value: Any, at: int) -> Any:
    if isinstance(value, bytes) and at != _BODY_AT:
        return value.decode("utf-8", "replace")
    return value


def _sound(row: tuple[Any, ...]) -> bool:
    kinds = (int, str, str, int, float, float, str, bytes, int)
    return (
        all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True))
        and row[0] > 0
        and row_crc(row[1], row[2], row[4], row[6], row[7]) == row[8]
    )


def _close(connection: sqlite3.Connection) -> None:
    try:
        connection.close()
    except sqlite3.Error:
        # A damaged file may refuse even its last checkpoint; the handle is gone all the same.
        return
