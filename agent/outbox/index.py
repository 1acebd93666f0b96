"""The index of an outbox: what is where in its segments, and the state of each item, in memory.

It is what a scan of the segments gives, at each start. One thread at a time uses it; what a
transaction changes is written by `commit`, and forgotten by `reload`.
"""

import zlib
from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent.outbox.frames import HEADER_SIZE, FrameKind, Record
from agent.outbox.items import TRANSITIONS, ItemEvent, ItemKind, ItemState, Lane
from agent.outbox.records import (
    Boot,
    Entry,
    ItemHead,
    ItemNote,
    Naming,
    Note,
    Range,
    SegmentContents,
    encode_record,
    expanded,
    ranges,
)
from agent.outbox.segments import NOTES_SIZE, SEGMENT_SIZE, Segment, SegmentFiles
from at.protocol.counts import counted

_MOST_RECENT = 10_000


class Damage(NamedTuple):
    """What was found damaged at a start."""

    files: int = 0
    kept: int = 0
    """The items of these files that are whole."""
    lost: int = 0

    def __str__(self) -> str:
        return (
            f"the outbox was damaged: {counted(self.lost, 'items')} lost, "
            f"{counted(self.kept, 'items')} of {counted(self.files, 'damaged files')} kept"
        )


_changed = msgspec.structs.replace


class OutboxIndex:
    """The items of the outbox in `folder`. Raises OSError, UntrustedPlace."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = SegmentFiles(folder)
        self.in_flight: set[int] = set()
        """The ids of what is in flight: only in memory, since it waits again after a crash."""
        self._in_flight_before: set[int] = set()
        self.damage: Damage | None = None
        """What was found; None if nothing."""
        self._load()

    def reload(self) -> None:
        """Read the segments again; what was not committed is forgotten."""
        self.files.close()
        self.files = SegmentFiles(self._folder)
        self._load()

    # Reading

    def _load(self) -> None:
        self.entries: dict[int, Entry] = {}
        """By id, in order."""
        self.lanes: dict[Lane, dict[int, Entry]] = {}
        """The entries of each lane, in order."""
        self.parked: set[int] = set()
        self.size = 0
        """Bytes of all bodies."""
        self._forget_changes()
        self._read()
        self.in_flight = self._in_flight_before & self.entries.keys()

    def _read(self) -> None:
        """Read every segment; what is whole of a damaged one is moved to a new one."""
        found, destroyed = self._contents()
        lost = self._replay([record for each in found for record in each.records])
        newest = found[-1].segment if found else None
        number, last_id, items = self.files.saved_totals()
        behind = max(0, last_id - self.known.last_id)
        lost += min(behind, items)
        every = [each.segment for each in found]
        self._segments = [each for each in every if each.items or each is newest]
        used = {each.path for each in self._segments}
        for path in self.files.paths:
            if path not in used and path.exists():
                self.files.release(path)
        self.files.newest = max(number, newest.number if newest else 0)
        damaged = [each for each in self._segments if not each.is_sound]
        files = destroyed + len(damaged) + (newest is not None and newest.number < number)
        if files or lost:
            # Also ids that may have been given are not given again.
            self.known.last_id += behind + SEGMENT_SIZE // HEADER_SIZE
            self.count_damage(Damage(files, sum(each.items for each in damaged), lost))
            with suppress(OSError):  # the disk is full: it is told again at the next start
                emptied: list[Segment | None] = [*damaged] or [None]
                for segment in emptied:
                    self._begin_segment(segment)
                self._release_unused()
        elif newest is not None:
            self.files.resume(newest)

    def _contents(self) -> tuple[list[SegmentContents], int]:
        """Return what the files hold, oldest first, and how many are destroyed: those are renamed.

        Of two copies of a segment the longer one comes last, and counts.
        """
        found: list[SegmentContents] = []
        destroyed = 0
        for path, segments in self.files.scan():
            if segments is None:
                self.files.release(path, is_damaged=True)
                destroyed += 1
            else:
                found += [SegmentContents(path, *each) for each in segments.items()]
        return sorted(found, key=lambda each: (each.segment.number, len(each.records))), destroyed

    def _replay(self, records: list[Entry | Note]) -> int:
        """Repeat what was written, in its order; return how many items are lost."""
        start, known = _last_whole(records)
        live, first_id = expanded(known.live or []), known.last_id
        before = (each for each in records[:start] if isinstance(each, Entry))
        entries = {each.id: each for each in before if each.id in live}
        gone: set[int] = set()
        for each in records[start:]:
            if isinstance(each, Entry):
                entries[each.id] = each
                known.last_id = max(known.last_id, each.id)
                if each.head.mark:
                    known.recent[each.head.mark] = each.head.added
            else:
                gone |= expanded(each.gone)
                each.last_id = max(known.last_id, each.last_id)
                each.items, each.recent = {**known.items, **each.items}, known.recent
                known = each
        told = entries.keys() | gone
        first_id = first_id if start else min(told, default=1) - 1
        lost = known.last_id - first_id - sum(id_ > first_id for id_ in told)
        self.known = known
        """What is known besides the items."""
        for id_ in sorted(entries.keys() - gone):
            _apply_namings(entries[id_], known.namings)
            self._place(entries[id_])
        known.items = {id_: note for id_, note in known.items.items() if id_ in self.entries}
        self.parked = {id_ for id_, note in known.items.items() if note.parked is not None}
        return max(0, lost) + len(live - told)

    def read(self, entry: Entry) -> bytes | None:
        """Return the body of an item; None if that is damaged."""
        if (record := self._added.get(entry.id)) is None:  # else it is not written yet
            record = self.files.read(entry.segment, entry.offset, entry.length)
        return record and record.body

    def added_of(self, entry: Entry) -> float:
        """Return when an item was added, by the clock as it was set last in that boot."""
        boot = self.known.boots.get(entry.head.boot)
        return entry.head.added if boot is None else boot.offset_s + entry.head.since_boot

    # Changing

    def begin(self) -> None:
        """Begin a transaction."""
        self._in_flight_before = self.in_flight.copy()
        if self.files.current is None and self._segments:
            with suppress(OSError):  # the disk is full: then nothing can be written
                self._begin_segment()

    def reserve(self, size: int) -> None:
        """Reserve room on the disk for `size` bytes more of frames. Raises OSError."""
        if self.files.current is None:
            self._begin_segment()
        self.files.reserve(size + self._added_bytes)

    def insert(self, head: ItemHead, body: bytes) -> int:
        """Add an item; `reserve` has found its room. Returns its id, which none had."""
        segment = self.files.current
        assert segment is not None
        self.known.last_id = id_ = self.known.last_id + 1
        record = self._added[id_] = Record(FrameKind.ITEM, id_, encode_record(head), body)
        at, length = segment.end + self._added_bytes, HEADER_SIZE + len(record.head) + len(body)
        self._added_bytes += length
        self._place(Entry(id_, head, (head.device, head.kind), len(body), segment, at, length))
        return id_

    def _place(self, entry: Entry) -> None:
        self.entries[entry.id] = entry
        self.lanes.setdefault(entry.lane, {})[entry.id] = entry
        self.size += entry.size
        entry.segment.items += 1
        entry.segment.live += entry.length

    def _remove(self, id_: int) -> None:
        entry = self.entries.pop(id_)
        del self.lanes[entry.lane][id_]
        self.size -= entry.size
        entry.segment.items -= 1
        entry.segment.live -= entry.length
        self._noted.discard(id_)
        self.known.items.pop(id_, None)
        self.parked.discard(id_)
        self._gone.add(id_)

    def note_of(self, id_: int) -> ItemNote:
        """Return what is known of an item since it was added."""
        return self.known.items.get(id_) or ItemNote()

    def set_note(self, id_: int, note: ItemNote) -> None:
        """Record what is known of an item."""
        self.known.items[id_] = note
        self._noted.add(id_)
        (self.parked.discard if note.parked is None else self.parked.add)(id_)

    def state_of(self, id_: int) -> ItemState | None:
        """Return the state of an item, None for one that is gone or never was."""
        if id_ in self.in_flight:
            return ItemState.IN_FLIGHT
        if id_ in self.parked:
            return ItemState.PARKED
        return ItemState.WAITING if id_ in self.entries else None

    def allowing(self, event: ItemEvent, ids: Iterable[int]) -> list[int]:
        """Return those of the items that `event` can happen to."""
        every = dict.fromkeys(ids)
        return [id_ for id_ in every if (self.state_of(id_), event) in TRANSITIONS]

    def move(self, ids: Iterable[int], event: ItemEvent, reason: str = "") -> None:
        """Move items on by an event; what ends one is counted. `reason` is why one is parked."""
        for id_ in ids:
            before = self.state_of(id_)
            if before is None:
                continue
            after = TRANSITIONS[before, event]
            self.in_flight.discard(id_)
            if after is ItemState.IN_FLIGHT:
                self.in_flight.add(id_)
            elif after is ItemState.PARKED:
                self.set_note(id_, _changed(self.note_of(id_), parked=reason[:500]))
            elif after is not ItemState.WAITING:
                self._remove(id_)
                self.count(after.value)
            elif before is ItemState.PARKED:
                self.set_note(id_, ItemNote())

    def message_ids(self, lane: Lane, message: int) -> list[int]:
        """Return the ids of the waiting items of a message of this lane, in order."""
        found: list[int] = []
        for id_, entry in self.lanes.get(lane, {}).items():
            if entry.head.message == message:
                if id_ not in self.parked:
                    found.append(id_)
            elif found:
                break  # the chunks of a device come one message after another
        return found

    def mark_in_doubt(self, lane: Lane, items: Range | None) -> None:
        """Record from which to which item a request may or may not arrive; None: it has."""
        if self.known.in_doubt.pop(lane, None) != items:
            self._is_changed = True
        if items is not None:
            self.known.in_doubt[lane] = items

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter of the totals."""
        self.known.counts[name] = self.known.counts.get(name, 0) + by
        self._is_changed = True

    def count_damage(self, damage: Damage) -> None:
        """Count what was found damaged."""
        self.damage = Damage(*map(sum, zip(self.damage or Damage(), damage, strict=True)))
        for name, by in zip(("damaged_files", "salvaged", "unreadable"), damage, strict=True):
            self.count(name, by)

    def set_boot(self, number: int, boot: Boot) -> None:
        """Record a boot of the host, or that its clock was set."""
        self.known.boots[number] = boot
        self._is_changed = True

    def name_device(self, unnamed: str, device: str) -> None:
        """Give the items that were added as `unnamed` to the lanes of `device`, in their order."""
        moved = {kind: self.lanes.pop((unnamed, kind), {}) for kind in ItemKind}
        if not any(moved.values()):
            return
        for kind, entries in moved.items():
            lane = device, kind
            for entry in entries.values():
                entry.lane = lane
            self.lanes[lane] = dict(sorted({**self.lanes.get(lane, {}), **entries}.items()))
        self.known.namings.append(Naming(unnamed, self.known.last_id, device))
        self._is_changed = True

    def remember(self, mark: bytes, added: float) -> None:
        """Remember the mark of an item that is being added; the oldest mark goes for it."""
        recent = self.known.recent
        recent.pop(mark, None)
        recent[mark] = added
        while len(recent) > _MOST_RECENT:
            del recent[next(iter(recent))]

    # Writing

    def commit(self) -> None:
        """Write and sync what the transaction has changed. Raises OSError."""
        is_noted = self._noted or self._gone or self._is_changed
        if not (self._added or is_noted):
            return
        if self.files.current is None:
            self._begin_segment()
        records = list(self._added.values())
        if is_noted:
            gone, items = ranges(sorted(self._gone)), {n: self.known.items[n] for n in self._noted}
            note = _changed(self.known, gone=gone, items=items, live=None, recent={})
            records.append(Record(FrameKind.NOTE, 0, encode_record(note)))
        self.files.append(records)
        self.files.save_totals(self.known.last_id, len(self.entries))
        self._forget_changes()
        current = self.files.current
        if current and current.end > SEGMENT_SIZE - NOTES_SIZE:
            with suppress(OSError):  # the disk is full: this one is written to as far as it goes
                self._begin_segment(self._sparsest())
            is_noted = True
        if is_noted:
            self._release_unused()

    def _forget_changes(self) -> None:
        self._added: dict[int, Record] = {}
        self._added_bytes = 0
        self._noted: set[int] = set()
        self._gone: set[int] = set()
        self._is_changed = False

    def _begin_segment(self, emptied: Segment | None = None) -> None:
        """Go on in another segment, which begins with all that is not the items themselves.

        The items of `emptied` are moved to it.
        """
        known, entries = self.known, self.entries
        oldest = next(iter(entries), known.last_id + 1)
        known.namings = [naming for naming in known.namings if naming.last >= oldest]
        known.in_doubt = {lane: each for lane, each in known.in_doubt.items() if self.lanes[lane]}
        if len(known.boots) > 1:
            used = {next(reversed(known.boots)), *(entry.head.boot for entry in entries.values())}
            known.boots = {number: boot for number, boot in known.boots.items() if number in used}
        note = encode_record(_changed(known, live=ranges(list(entries)), gone=[]))
        records = [Record(FrameKind.NOTE, 0, b"", zlib.compress(note, 1))]
        at = HEADER_SIZE + len(records[0].body)
        moved: list[tuple[Entry, int]] = []
        for entry in entries.values() if emptied else ():
            if entry.segment is emptied and (
                record := self.files.read(emptied, entry.offset, entry.length)
            ):
                records.append(record)
                moved.append((entry, at))
                at += entry.length
        segment = self.files.begin(records)
        self._segments.append(segment)
        for entry, offset in moved:
            for place, change in ((entry.segment, -1), (segment, 1)):
                place.items += change
                place.live += change * entry.length
            entry.segment, entry.offset = segment, offset
        self.files.save_totals(known.last_id, len(entries))

    def _sparsest(self) -> Segment | None:
        """Return the segment whose items are worth moving: few, beside what is gone of it."""
        sparse = [
            each
            for each in self._segments
            if 0 < each.live < SEGMENT_SIZE // 4 and each is not self.files.current
        ]
        return min(sparse, key=attrgetter("live"), default=None)

    def _release_unused(self) -> None:
        for segment in self._segments.copy():
            if not segment.items and segment is not self.files.current:
                self._segments.remove(segment)
                if all(each.path != segment.path for each in self._segments):
                    self.files.release(segment.path, is_damaged=not segment.is_sound)


def _last_whole(records: list[Entry | Note]) -> tuple[int, Note]:
    """Return the last note that needs no earlier one, and the index of the record after it.

    0 and an empty note where there is none.
    """
    for number in range(len(records), 0, -1):
        note = records[number - 1]
        if isinstance(note, Note) and note.live is not None:
            return number, note
    return 0, Note()


def _apply_namings(entry: Entry, namings: list[Naming]) -> None:
    """Give an item to its device, where that was named only after the item was added."""
    for naming in namings:
        if naming.unnamed == entry.lane[0] and entry.id <= naming.last:
            entry.lane = (naming.device, entry.lane[1])
