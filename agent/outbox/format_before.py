"""Takes over an outbox of the format before: one SQLite file, which stays until all is delivered.

It is read whole in one transaction, and then has another name. A start that is killed in between
reads it again: each item bears the mark of where it came from, so none comes twice.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent.errors import UsageError
from agent.files.trusted_places import require_trusted_file
from agent.outbox.dedup import mark_of
from agent.outbox.index import Damage, OutboxIndex
from agent.outbox.items import ItemKind, NewItem
from agent.outbox.records import ItemHead, ItemNote

FILE = "outbox.sqlite"
_TAKEN = "outbox.sqlite.taken"
_PAGE = 4096
_BODY_AT = 7
# A damaged schema gives error messages that are no UTF-8, and sizes beyond any memory.
_DAMAGE = (sqlite3.Error, OverflowError, MemoryError, ValueError)


class _Row(NamedTuple):
    """Its names are those of the columns."""

    id: int
    kind: ItemKind
    device: str
    message: int
    captured: float
    added: float
    meta: str
    body: bytes
    crc: int
    state: int
    refusals: int
    reason: str


class FormatBefore:
    """The file of the format before in `folder`, where there is one."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._is_damaged = False

    def take_over(self, index: OutboxIndex) -> None:
        """Add what it holds to the index. Raises OSError: it is read at a later start."""
        path = self._path
        if not path.exists():
            return
        require_trusted_file(path, path.stat())
        size = path.stat().st_size
        os.truncate(path, size + -size % _PAGE)  # the part of a page that was cut off is read
        about = {_text(name): _text(value) for name, value in self._read("name, value FROM about")}
        name, found = about.get("id", "unreadable"), list(self._rows())
        index.begin()
        for mark, added in self._read("mark, at FROM recent"):
            if isinstance(mark, bytes) and isinstance(added, float):
                index.remember(mark_of(mark), added)  # written as the first segment begins
        ids = {entry.head.key: entry.id for entry in index.entries.values() if entry.head.key}
        again = bool(ids)  # an earlier start was killed before it gave the file another name
        self._add({f"{name}-{row.id}": row for row in found if row is not None}, ids, index)
        if not again:
            for what, value in self._read("name, value FROM counts"):
                if isinstance(value, int):
                    index.count(_text(what), value)
            lost = found.count(None)
            if self._is_damaged or lost:
                index.count_damage(Damage(1, len(found) - lost, lost))
        for what, value in about.items():
            *first, last = [ids.get(f"{name}-{word}", 0) for word in value.split()] or [0]
            if what.startswith("in doubt ") and last in index.entries:
                index.mark_in_doubt(index.entries[last].lane, (first[0] if first else 0, last))
        index.commit()
        path.rename(path.with_name(_TAKEN))

    def remove_if_delivered(self, index: OutboxIndex) -> None:
        """Remove the file once nothing of it waits any more."""
        taken = self._path.with_name(_TAKEN)
        if taken.exists() and not any(entry.head.key for entry in index.entries.values()):
            for part in ("-journal", "-shm", "-wal"):
                self._path.with_name(FILE + part).unlink(missing_ok=True)
            taken.unlink()

    def _add(self, rows: dict[str, _Row], ids: dict[str, int], index: OutboxIndex) -> None:
        """Add items by their keys, but for those with known `ids`; then all are known."""
        index.reserve(sum(len(row.body) + len(row.meta) + 1024 for row in rows.values()))
        for key, row in rows.items():
            if key in ids:
                continue
            first = f"{key.rpartition('-')[0]}-{row.message}"
            message = ids.get(first, index.known.last_id + 1)
            meta = json.loads(row.meta or "{}")
            times = row.captured, row.added
            head = ItemHead(row.kind, row.device, message, *times, meta=meta, key=key)
            ids[key] = index.insert(head, row.body)
            if row.state == 1 or row.refusals:
                note = ItemNote(row.refusals, row.reason if row.state == 1 else None)
                index.set_note(ids[key], note)

    def _rows(self) -> Iterator[_Row | None]:
        """Yield the items in order; None for one that is damaged."""
        query = f"{', '.join(_Row._fields)} FROM items NOT INDEXED WHERE id > {{}} ORDER BY id"
        after = 0
        for row in self._read(query.format(after)):
            after = row[0] if isinstance(row[0], int) else after
            yield _sound(row)
        if self._is_damaged:
            # A damaged page stops each walk, and hides only what it holds.
            rest = list(self._read(f"{query.format(after)} DESC"))
            yield from [_sound(row) for row in reversed(rest)]

    def _read(self, query: str) -> Iterator[tuple[object, ...]]:
        """Yield what can be read; text is bytes, for what is damaged is no UTF-8."""
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as source:
                source.execute("PRAGMA locking_mode=EXCLUSIVE")
                # It lets a file be read that is shorter than its header says.
                source.execute("PRAGMA writable_schema=1")
                source.text_factory = bytes
                yield from source.execute(f"SELECT {query}")
        except _DAMAGE:
            self._is_damaged = True


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _sound(values: tuple[object, ...]) -> _Row | None:
    """Return a row whose checksum is right, and that an item can be now; else None."""
    texts = [
        _text(value) if isinstance(value, bytes) and at != _BODY_AT else value
        for at, value in enumerate(values)
    ]
    try:
        row = msgspec.convert(texts, _Row)
        NewItem(row.kind, row.device, row.body, row.captured, meta=json.loads(row.meta or "{}"))
    except (ValueError, RecursionError, UsageError):
        return None
    told = f"{row.kind}\n{row.device}\n{row.captured!r}\n{row.meta}"
    return (
        row if row.id > 0 and row.crc == zlib.crc32(row.body, zlib.crc32(told.encode())) else None
    )
