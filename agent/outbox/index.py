"""The index of an outbox: what is where in its segments, and the state of each item, in memory.

It is read from the segments at each start. One thread at a time uses it; what a transaction changes
is written by `commit`, and forgotten by `reload`.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent.outbox.frames import HEADER_SIZE, FrameKind
from agent.outbox.items import TRANSITIONS, ItemEvent, ItemKind, ItemState, Lane
from agent.outbox.records import (
    BootClock,
    ClockStep,
    Entry,
    ItemHead,
    ItemNote,
    Naming,
    Note,
    Range,
    SegmentContents,
    TakenOver,
    encode_record,
    expanded,
    ranges,
)
from agent.outbox.segments import NOTES_SIZE, SEGMENT_SIZE, SegmentFiles
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
        """What was found for the first time; None if nothing."""
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
        self.in_doubt: dict[Lane, Range] = {}
        """Lane whose last request may or may not have arrived -> its first and its last item."""
        self.size = 0
        """Bytes of all bodies."""
        self.known = Note()
        """What is known besides the items."""
        self._forget_changes()
        self._read()
        self.in_flight = self._in_flight_before & self.entries.keys()

    def _read(self) -> None:
        found: dict[int, SegmentContents] = {}
        destroyed = []
        for path, scan in self.files.scan():
            if not scan.frames:
                destroyed.append(path)
                continue
            each = SegmentContents(path, scan)
            other = found.get(each.segment.number)
            if other is None or len(each.records) > len(other.records):  # else it is a copy
                found[each.segment.number] = each
        in_order = [found[number] for number in sorted(found)]
        newest = in_order[-1] if in_order else None
        lost = self._replay([record for each in in_order for record in each.records])
        used = [each for each in in_order if each is newest or each.segment.items]
        self._segments = {each.segment.number: each.segment for each in used}
        new = [each for each in used if each.damaged and self._is_new(each)]
        files = len(new) + len(destroyed)
        if newest is None or newest.segment.number < self.files.saved_totals()[0]:
            files = files or bool(self.files.paths)  # the newest one is gone
        self.files.keep(self._segments.values(), destroyed)
        if files or lost:
            self.known.last_id += SEGMENT_SIZE // HEADER_SIZE  # ids that may have been given
            self.add_damage(Damage(files, sum(each.segment.items for each in new), lost))
            self._is_changed = False  # it is written with the next segment
        elif newest is not None and not newest.damaged:
            self.files.begin(newest.segment)

    def _is_new(self, contents: SegmentContents) -> bool:
        number, crc = contents.segment.number, zlib.crc32(repr(contents.damaged).encode())
        contents.segment.damaged = True
        told, self.known.damage[number] = self.known.damage.get(number), crc
        return told != crc

    def _replay(self, records: list[Entry | Note]) -> int:
        """Let what was written happen again; return how many items are lost."""
        notes = [(at, each) for at, each in enumerate(records) if isinstance(each, Note)]
        start, self.known = next(
            ((at + 1, note) for at, note in reversed(notes) if note.live is not None), (0, Note())
        )
        known = self.known
        entries = {each.id: each for each in records[:start] if isinstance(each, Entry)}
        if start:
            live = expanded(known.live or [])
            entries = {id_: entry for id_, entry in entries.items() if id_ in live}
        missing = live - entries.keys() if start else set[int]()
        gone: set[int] = set()
        for each in records[start:]:
            if isinstance(each, Entry):
                if known.last_id:
                    missing.update(range(known.last_id + 1, each.id))
                missing.discard(each.id)
                entries[each.id] = each
                known.last_id = max(known.last_id, each.id)
                if each.head.mark:
                    known.recent[each.head.mark] = each.head.added
                continue
            gone |= expanded(each.gone)
            known.items.update(each.items)
            known.counts.update(each.counts)
            known.clock, known.steps = each.clock or known.clock, each.steps or known.steps
            known.namings = each.namings or known.namings
            known.taken_over.update(each.taken_over)
            known.last_id = max(known.last_id, each.last_id)
        for id_ in sorted(entries.keys() - gone):
            entry = entries[id_]
            entry.head.added += sum(s.step_s for s in known.steps if s.first <= id_ <= s.last)
            for naming in known.namings:
                if naming.unnamed == entry.lane[0] and id_ <= naming.last:
                    entry.lane = (naming.device, entry.lane[1])
            self._place(entry)
        self.counts = Counter(known.counts)
        known.items = {id_: note for id_, note in known.items.items() if id_ in self.entries}
        self.parked = {id_ for id_, note in known.items.items() if note.parked}
        in_doubt = {id_: note.in_doubt for id_, note in known.items.items() if note.in_doubt}
        self.in_doubt = {self.entries[id_].lane: (first, id_) for id_, first in in_doubt.items()}
        _, last_id, items = self.files.saved_totals()
        behind = max(0, last_id - known.last_id)
        known.last_id += behind
        return len(missing - gone) + min(behind, items)

    def read(self, entry: Entry) -> bytes | None:
        """Return the body of an item; None if that is damaged."""
        if (added := self._added.get(entry.id)) is not None:  # it is not written yet
            return added[entry.length - entry.size :]
        frame = self.files.read(entry.segment, entry.offset, entry.length)
        return frame and frame.body

    # Changing

    def begin(self) -> None:
        """Begin a transaction."""
        self._in_flight_before = self.in_flight.copy()
        if self.files.current is None and (self._segments or self.damage):
            with suppress(OSError):  # the disk is full: then nothing can be written
                self._begin_segment()

    def reserve(self, size: int) -> None:
        """Have room on the disk for items whose frames take `size` bytes more. Raises OSError."""
        if self.files.current is None:
            self._begin_segment()
        self.files.reserve(size + self._added_bytes)

    def insert(self, id_: int, head: ItemHead, body: bytes) -> None:
        """Add an item under an id that none had; `reserve` has found its room."""
        segment = self.files.current
        assert segment is not None
        at = segment.end + self._added_bytes
        frame = self._frame(FrameKind.ITEM, self._added_bytes, id_, encode_record(head), body)
        length = len(frame)
        self._added[id_] = frame
        self._added_bytes += length
        self.known.last_id = max(self.known.last_id, id_)
        self._place(Entry(id_, head, (head.device, head.kind), len(body), segment, at, length))

    def _frame(self, kind: FrameKind, behind: int, number: int, head: bytes, body: bytes) -> bytes:
        """Return a frame for the place `behind` bytes behind the current segment's end."""
        segment = self.files.current
        assert segment is not None
        at = segment.end + behind
        return self.files.codec.encode(kind, segment.number, at, number, head, body)

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
        (self.parked.add if note.parked else self.parked.discard)(id_)

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
        """Let `event` happen to items; what ends one is counted. `reason` is why one is parked."""
        for id_ in ids:
            before = self.state_of(id_)
            if before is None:
                continue
            after = TRANSITIONS[before, event]
            self.in_flight.discard(id_)
            if after is ItemState.IN_FLIGHT:
                self.in_flight.add(id_)
            elif after is ItemState.PARKED:
                note = _changed(self.note_of(id_), parked=True, reason=reason[:500])
                self.set_note(id_, note)
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
                found += [] if id_ in self.parked else [id_]
            elif found:
                break  # the chunks of a device come one message after another
        return found

    def mark_in_doubt(self, lane: Lane, items: Range | None) -> None:
        """Record from which to which item a request may or may not arrive; None: it has."""
        before = self.in_doubt.pop(lane, (0, 0))
        if items is not None:
            self.in_doubt[lane] = items
        for last, doubt in ((before[1], 0), *([(items[1], items[0])] if items else [])):
            if before != items and last in self.entries:
                self.set_note(last, _changed(self.note_of(last), in_doubt=doubt))

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter of the totals."""
        self.counts[name] += by
        self._is_changed = True

    def add_damage(self, damage: Damage) -> None:
        """Count what was found damaged, and tell it."""
        before = self.damage or Damage()
        self.damage = Damage(*map(sum, zip(before, damage, strict=True)))
        names = ("damaged_files", "salvaged", "unreadable")
        self.counts.update(dict(zip(names, damage, strict=True)))
        self._is_changed = True

    def set_clock(self, clock: BootClock, step: ClockStep | None = None) -> None:
        """Record how the host's clock stands, and by how much that moves the times of items."""
        self.known.clock = clock
        if step is not None:
            self.known.steps = [*self.known.steps, step]
            for entry in self.entries.values():
                if step.first <= entry.id <= step.last:
                    entry.head.added += step.step_s
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
        naming = Naming(unnamed, self.known.last_id, device)
        self.known.namings = [*self.known.namings, naming]
        self._is_changed = True

    def set_taken_over(self, name: str, taken: TakenOver) -> None:
        """Record how far a file of the format before has been taken over."""
        self.known.taken_over[name] = taken
        self.known.last_id = max(self.known.last_id, taken.newest)
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
        known = self.known
        frames, size = list(self._added.values()), self._added_bytes
        if is_noted:
            known.counts = dict(self.counts)
            gone, items = ranges(sorted(self._gone)), {id_: known.items[id_] for id_ in self._noted}
            note = _changed(known, gone=gone, items=items, live=None, recent={}, damage={})
            frames.append(self._frame(FrameKind.NOTE, size, 0, encode_record(note), b""))
            size += len(frames[-1])
        self.files.append(frames, size)
        self.files.save_totals(known.last_id, len(self.entries))
        self._forget_changes()
        current = self.files.current
        if current and current.end > SEGMENT_SIZE - NOTES_SIZE:
            with suppress(OSError):  # the disk is full: this one is written to as far as it goes
                self._begin_segment()
                self._empty_sparsest()
            is_noted = True
        for number, segment in list(self._segments.items()) if is_noted else ():
            if not segment.items and segment is not self.files.current:
                del self._segments[number]
                self.files.release(segment)

    def _forget_changes(self) -> None:
        self._added: dict[int, bytes] = {}
        """Id -> frame, for its place behind the current segment's end."""
        self._added_bytes = 0
        self._noted: set[int] = set()
        self._gone: set[int] = set()
        self._is_changed = False

    def _begin_segment(self) -> None:
        """Go on in another segment, which begins with all that is not the items themselves."""
        known = self.known
        oldest = next(iter(self.entries), known.last_id + 1)
        none_gone = len(self.entries) == known.last_id + 1 - oldest
        known.live = [(oldest, known.last_id)] if none_gone else ranges(self.entries)
        known.counts = dict(self.counts)
        known.steps = [step for step in known.steps if step.last >= oldest]
        known.namings = [naming for naming in known.namings if naming.last >= oldest]
        known.damage = {n: crc for n, crc in known.damage.items() if n in self._segments}
        segment = self.files.begin_next(zlib.compress(encode_record(known), 1))
        self._segments[segment.number] = segment

    def _empty_sparsest(self) -> None:
        """Move the last items of a segment into the current one, if they are less than half."""
        current = self.files.current
        sparse = [
            (each.live, number)
            for number, each in self._segments.items()
            if each.items and each is not current and each.live < min(each.end, SEGMENT_SIZE) // 2
        ]
        if not sparse or current is None:
            return
        segment = self._segments[min(sparse)[1]]
        moved: list[tuple[Entry, bytes]] = []
        size = 0
        for entry in self.entries.values():
            if entry.segment is segment and (
                read := self.files.read(segment, entry.offset, entry.length)
            ):
                frame = self._frame(FrameKind.ITEM, size, entry.id, read.head, read.body)
                moved.append((entry, frame))
                size += len(frame)
        at = current.end
        self.files.append([frame for _, frame in moved], size)
        for entry, frame in moved:
            for place, change in ((segment, -1), (current, 1)):
                place.items += change
                place.live += change * entry.length
            entry.segment, entry.offset = current, at
            at += len(frame)
