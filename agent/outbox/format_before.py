"""Takes over an outbox of the format before: one SQLite file, which stays until all is delivered.

A start that is killed meanwhile neither loses nor doubles an item: how far it came is noted, and
each item bears the mark of where it came from.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent.config.trusted_places import require_trusted_file
from agent.errors import UsageError
from agent.outbox.dedup import mark_of
from agent.outbox.index import Damage, OutboxIndex
from agent.outbox.items import ItemKind, NewItem
from agent.outbox.records import BootClock, ItemHead, ItemNote, TakenOver

FILE = "outbox.sqlite"
_AT_ONCE = 256
_PAGE = 4096
_ALL = 1 << 62
_COLUMNS = "id, kind, device, message, captured, added, meta, body, crc, state, refusals, reason"
_BODY_AT = 7
# A damaged schema gives error messages that are no UTF-8, and sizes beyond any memory.
_DAMAGE = (sqlite3.Error, OverflowError, MemoryError, ValueError)


class _Row(NamedTuple):
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

    def is_whole(self) -> bool:
        told = f"{self.kind}\n{self.device}\n{self.captured!r}\n{self.meta}"
        return self.crc == zlib.crc32(self.body, zlib.crc32(told.encode()))


class FormatBefore:
    """The file of the format before in `folder`, where there is one."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._name = ""
        self._damaged = False
        self._in_doubt: dict[int, int] = {}  # last -> first item of a request

    def take_over(self, index: OutboxIndex) -> None:
        """Add what it holds to the index. Raises OSError: the rest comes at a later start."""
        if not self._path.exists():
            return
        require_trusted_file(self._path, self._path.stat())
        size = self._path.stat().st_size
        os.truncate(self._path, size + -size % _PAGE)  # the part of a page that was cut off is read
        about = {_text(name): _text(value) for name, value in self._read("name, value FROM about")}
        self._name = about.get("id", "unreadable")
        doubts = [value for name, value in about.items() if name.startswith("in doubt ")]
        words = [[int(word) for word in value.split() if word.isdecimal()] for value in doubts]
        self._in_doubt = {each[-1]: each[0] if each[1:] else 1 for each in words if each}
        taken = index.known.taken_over.get(self._name)
        if taken is None:
            taken = self._begin(about, index)
        if taken.whole:
            return
        rows, kept, lost = self._rows(taken.last), 0, 0
        while chunk := list(islice(rows, _AT_ONCE)):
            whole = [row for row in chunk if row is not None]
            lost += len(chunk) - len(whole)
            new = [row for row in whole if row.id + taken.shift not in index.entries]
            index.reserve(sum(len(row.body) + len(row.meta) + 1024 for row in new))
            for row in new:
                self._add(row, taken.shift, index)
            index.commit()
            kept += len(new)
            if whole:  # only what is on the disk is noted as taken over
                taken = taken._replace(last=whole[-1].id)
                index.set_taken_over(self._name, taken)
                index.commit()
        index.set_taken_over(self._name, taken._replace(whole=True))
        if self._damaged or lost:
            index.add_damage(Damage(1, kept, lost))
        index.commit()
        index.reload()

    def remove_if_delivered(self, index: OutboxIndex) -> None:
        """Remove the file once nothing of it waits any more."""
        taken = index.known.taken_over.get(self._name)
        if taken is not None and taken.whole and next(iter(index.entries), _ALL) > taken.newest:
            for part in ("-journal", "-shm", "-wal", ""):
                self._path.with_name(FILE + part).unlink(missing_ok=True)

    def _begin(self, about: dict[str, str], index: OutboxIndex) -> TakenOver:
        """Note what the file says besides its items; theirs are the next ids."""
        ids = [int(row[0]) for row in self._read("id FROM items") if isinstance(row[0], int)]
        newest = index.known.last_id + max(ids, default=0)
        taken = TakenOver(0, index.known.last_id, newest)
        with suppress(msgspec.MsgspecError):
            clock = msgspec.json.decode(about.get("clock", ""), type=BootClock)
            if index.known.clock is None:
                index.set_clock(clock._replace(last_id_before=clock.last_id_before + taken.shift))
        for name, value in self._read("name, value FROM counts"):
            if isinstance(value, int):
                index.count(_text(name), value)
        for mark, added in self._read("mark, at FROM recent"):
            if isinstance(mark, bytes) and isinstance(added, float):
                index.remember(mark_of(mark), added)
        index.set_taken_over(self._name, taken)
        return taken

    def _add(self, row: _Row, shift: int, index: OutboxIndex) -> None:
        id_ = row.id + shift
        meta = json.loads(row.meta or "{}")
        key = f"{self._name}-{row.id}"
        message = row.message + shift
        head = ItemHead(row.kind, row.device, message, row.captured, row.added, meta, key=key)
        index.insert(id_, head, row.body)
        first = self._in_doubt.get(row.id, -shift)
        note = ItemNote(row.state == 1, row.refusals, row.reason, first + shift)
        if note != ItemNote():
            index.set_note(id_, note)

    def _rows(self, after: int) -> Iterator[_Row | None]:
        """Yield the items behind the id `after`, in order; None for one that is damaged."""
        query = f"{_COLUMNS} FROM items NOT INDEXED WHERE id > {{}} ORDER BY id"
        for row in self._read(query.format(after)):
            after = row[0] if isinstance(row[0], int) else after
            yield _sound(row)
        if self._damaged:
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
            self._damaged = True


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _sound(values: tuple[object, ...]) -> _Row | None:
    texts = [
        _text(value) if isinstance(value, bytes) and at != _BODY_AT else value
        for at, value in enumerate(values)
    ]
    try:
        row = msgspec.convert(texts, _Row)
        # What none can be now is lost, and told: no list or start could read it.
        meta = json.loads(row.meta or "{}")
        NewItem(row.kind, row.device, row.body, row.captured, meta=meta)
    except (ValueError, RecursionError, UsageError):
        return None
    return row if row.id > 0 and row.is_whole() else None
