"""Opens the outbox's file. A damaged file is set aside, and its readable rows are salvaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent.config.private_files import sync_folder
from agent.outbox import schema


def open_file(path: Path, now: float) -> tuple[sqlite3.Connection, int]:
    """Open the outbox at `path`, made if missing; return it and the number of salvaged items.

    A damaged file is set aside beside it, and its readable items go into a new one. The number
    is -1 if the file was sound. The caller holds the lock. Raises sqlite3.Error, OSError.
    """
    # The damaged file has this name until all that can be read of it is in the new one, synced: if
    # a start is killed, or has no room, the next start continues the salvage.
    damaged = path.with_name(f"{path.name}.salvaging")
    if not damaged.exists():
        connection = _open_if_sound(path)
        if connection is not None:
            return connection, -1
    # The file is renamed before its parts: until there is a new one, they can only be its own.
    if not damaged.exists() or not path.exists():
        _rename(path, damaged, _SUFFIXES)
    connection = schema.connect(path)
    try:
        salvaged = _salvage(damaged, connection)
        _set_aside(damaged, path, now)
    except BaseException:
        schema.close(connection)
        raise
    return connection, salvaged


def _open_if_sound(path: Path) -> sqlite3.Connection | None:
    """Open the file, None if it is damaged. Raises sqlite3.Error, OSError for any other trouble."""
    connection: sqlite3.Connection | None = None
    try:
        connection = schema.connect(path)
        schema.check(connection)
    except schema.DAMAGE as exc:
        if connection is not None:
            schema.close(connection)
        if not schema.is_damage(exc, path):
            raise
        return None
    return connection


def _set_aside(damaged: Path, path: Path, now: float) -> None:
    """Rename the damaged file, of which nothing more is needed, so that a person can look at it."""
    stem = f"{path.name}.damaged-{int(now)}"
    number = 0
    while (aside := path.with_name(f"{stem}.{number}" if number else stem)).exists():
        number += 1
    # The file is renamed last: no part of it is left beside the next damaged one.
    _rename(damaged, aside, _SUFFIXES[::-1])


_SUFFIXES = ("", "-wal", "-shm", "-journal")


def _rename(path: Path, new: Path, suffixes: tuple[str, ...]) -> None:
    """Rename the file and its companion files in the order of `suffixes`, those that exist."""
    for suffix in suffixes:
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(new.with_name(new.name + suffix))
    sync_folder(path.parent)


def _salvage(damaged: Path, connection: sqlite3.Connection) -> int:
    """Copy the rows that can be read and whose body is sound; return how many."""
    rows: dict[int, schema.Row] = {}
    for row in _readable_rows(damaged):
        if (sound := _sound(row)) is not None:
            rows.setdefault(sound[0], sound)
    sound_rows = [rows[number] for number in sorted(rows)]
    connection.execute("BEGIN IMMEDIATE")
    # An earlier start may have come as far as this.
    connection.executemany(schema.INSERT.replace("INSERT", "INSERT OR IGNORE", 1), sound_rows)
    connection.execute("COMMIT")
    return len(sound_rows)


def _readable_rows(damaged: Path) -> Iterator[tuple[object, ...]]:
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
                f"SELECT {schema.COLUMNS} FROM items NOT INDEXED ORDER BY id {order}"  # noqa: S608 - constants
            ):
                yield tuple(_decoded(value, at) for at, value in enumerate(row))
        except schema.DAMAGE:
            continue
        finally:
            schema.close(source)


_BODY_AT = schema.COLUMNS.split(", ").index("body")


def _decoded(value: object, at: int) -> object:
    if isinstance(value, bytes) and at != _BODY_AT:
        return value.decode("utf-8", "replace")
    return value


def _sound(row: tuple[object, ...]) -> schema.Row | None:
    try:
        sound = msgspec.convert(row, schema.Row)
    except msgspec.ValidationError:
        return None
    number, kind, device, _, captured, _, meta, body, crc = sound
    crc_found = schema.row_crc(kind, device, captured, meta, body)
    return sound if number > 0 and crc_found == crc else None
