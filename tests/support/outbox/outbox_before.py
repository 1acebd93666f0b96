"""Writes an outbox in the format before: one SQLite file."""

import json
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from agent.outbox import NewItem

NAME = "0123456789abcdef0123456789abcdef"
_SCHEMA = """
CREATE TABLE items(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, device TEXT NOT NULL,
    message INTEGER NOT NULL, captured REAL NOT NULL, added REAL NOT NULL, meta TEXT NOT NULL,
    body BLOB NOT NULL, crc INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '');
CREATE INDEX parked ON items(id) WHERE state = 1;
CREATE INDEX continuations ON items(message) WHERE message <> id;
CREATE TABLE recent(mark BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE counts(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version=2;
"""


def write(
    folder: Path, items: Sequence[NewItem], *, at: float, statements: Sequence[str] = ()
) -> Path:
    """Write the file with these items, then run `statements`; return its path."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    path = folder / "outbox.sqlite"
    path.touch(0o600)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for pragma in ("auto_vacuum=INCREMENTAL", "locking_mode=EXCLUSIVE", "journal_mode=WAL"):
            database.execute(f"PRAGMA {pragma}")
        database.executescript("BEGIN;" + _SCHEMA)
        database.execute("INSERT INTO about VALUES('id', ?)", (NAME,))
        for number, item in enumerate(items, 1):
            meta = json.dumps(dict(item.meta)) if item.meta else ""
            told = f"{item.kind.value}\n{item.device}\n{at!r}\n{meta}".encode()
            crc = zlib.crc32(item.body, zlib.crc32(told))
            row = (number, item.kind.value, item.device, number, at, at, meta, item.body, crc)
            database.execute(
                "INSERT INTO items(id, kind, device, message, captured, added, meta, body, crc) "
                "VALUES(?,?,?,?,?,?,?,?,?)",
                row,
            )
        for statement in statements:
            database.execute(statement)
        database.execute("COMMIT")
    return path
