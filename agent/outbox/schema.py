"""The outbox's file: its tables, how it is opened, and how it is checked for damage."""

from __future__ import annotations

import os
import re
import sqlite3
import uuid
import zlib
from pathlib import Path
from typing import TypeAlias

from agent.config.private_files import sync_folder, touch_private

FORMAT = 2

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
# Counts rows that are damaged although the table's tree is sound.
_MALFORMED_ROWS = """
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
LARGEST_INTEGER = 2**63 - 1
"""That SQLite takes."""
Row: TypeAlias = tuple[int, str, str, int, float, float, str, bytes, int]
"""The values of `INSERT`."""
LAST_ID = "last id"
"""The name in `about` of the highest number that was ever given: none is given twice."""
CLOCK = "clock"
"""The name in `about` of how the host's clock stood, as `tables.BootClock`."""
IN_DOUBT = "in doubt "
"""The prefix of a name in `about`, before kind and device. The value is the first and the last item
of a request that may or may not have arrived."""
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


class _Unsound(Exception):
    """The file opens, but its content breaks the format."""


# A damaged schema gives error messages that are no UTF-8, and sizes beyond any memory.
DAMAGE = (sqlite3.DatabaseError, _Unsound, UnicodeDecodeError, OverflowError, MemoryError)
_NOT_DAMAGE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
}


def is_damage(error: Exception, path: Path) -> bool:
    """Return whether the file is damaged; not if the disk is full, gone or not writable."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return True
    if code & 0xFF == sqlite3.SQLITE_READONLY:
        return os.access(path, os.W_OK)  # a damaged header, too, makes a file read-only
    return code & 0xFF not in _NOT_DAMAGE


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, made with its tables where there is none. Raises sqlite3.Error, OSError."""
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
        close(connection)
        raise
    return connection


def check(connection: sqlite3.Connection) -> None:
    """Check that the file keeps the format. Raises one of DAMAGE."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise _Unsound(f"format {version}")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise _Unsound(verdict)
    name = connection.execute("SELECT value FROM about WHERE name = 'id'").fetchone()
    if name is None or not isinstance(name[0], str):
        raise _Unsound("no id")
    (malformed,) = connection.execute(_MALFORMED_ROWS).fetchone()
    if malformed:
        raise _Unsound(f"{malformed} rows are of another shape")
    last = connection.execute("SELECT value FROM about WHERE name = ?", (LAST_ID,)).fetchone()
    if last is not None and not (isinstance(last[0], str) and _NUMBER.fullmatch(last[0])):
        raise _Unsound("the last id is no number")
    connection.execute("SELECT DISTINCT device FROM items").fetchall()
    connection.execute("SELECT name, value FROM counts").fetchall()
    connection.execute("SELECT mark, at FROM recent LIMIT 1").fetchall()


def row_crc(kind: str, device: str, captured: float, meta: str, body: bytes) -> int:
    """Return the CRC-32 of a row's content: each reader compares it with the stored one."""
    return zlib.crc32(body, zlib.crc32(f"{kind}\n{device}\n{captured!r}\n{meta}".encode()))


def close(connection: sqlite3.Connection) -> None:
    """Close a connection, whatever the state of its file."""
    try:
        connection.close()
    except sqlite3.Error:
        # A damaged file may refuse even its last checkpoint; the handle is gone all the same.
        return
