"""What is written in the frames of an outbox, and what is read of one of its segments."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent.json_value import JSONValue
from agent.outbox.frames import Frame, FrameKind, Scan
from agent.outbox.items import ItemKind, Lane
from agent.outbox.segments import Segment

Range = tuple[int, int]
"""First and last."""


class BootClock(NamedTuple):
    """The host's clock in the boot of this name, when an item was last added."""

    boot: str
    last_id_before: int
    """The last id that was given in an earlier boot."""
    offset_s: float
    """The time of the clock less the seconds since the boot."""


class ClockStep(NamedTuple):
    """The clock was set by `step_s` after the items of these ids were added."""

    first: int
    last: int
    step_s: float


class Naming(NamedTuple):
    """The items up to `last` that were added as `unnamed` are of `device`."""

    unnamed: str
    last: int
    device: str


class TakenOver(NamedTuple):
    """How far a file of the format before has been taken over."""

    last: int
    """The last id in that file."""
    shift: int
    """How much larger an id is here than there."""
    newest: int
    """The highest id here that it takes."""
    whole: bool = False


class ItemHead(msgspec.Struct, array_like=True):
    """What is written of an item besides its id and its body."""

    kind: ItemKind
    device: str
    message: int
    """The id of the item that begins its message."""
    captured: float
    added: float
    meta: dict[str, JSONValue] = {}
    mark: bytes = b""
    """By which a duplicate is known; empty where none is looked for."""
    key: str = ""
    """Its idempotency key where this outbox did not give it."""


class ItemNote(msgspec.Struct, omit_defaults=True, frozen=True):
    """What is known of an item since it was added; a new field only needs a default."""

    parked: bool = False
    refusals: int = 0
    reason: str = ""
    in_doubt: int = 0
    """The first item of the request that it ends, and that may or may not have arrived."""


class Note(msgspec.Struct, omit_defaults=True):
    """What a transaction changed besides adding items; the first of a segment holds everything."""

    gone: list[Range] = []
    items: dict[int, ItemNote] = {}
    counts: dict[str, int] = {}
    clock: BootClock | None = None
    steps: list[ClockStep] = []
    namings: list[Naming] = []
    last_id: int = 0
    """The highest id that was given."""
    taken_over: dict[str, TakenOver] = {}
    """By the name of the outbox of the format before."""
    live: list[Range] | None = None
    """The items that are still there; None in a note of one transaction."""
    recent: dict[bytes, float] = {}
    """Mark of an item -> when it was added."""
    damage: dict[int, int] = {}
    """Segment -> the CRC-32 of what is damaged in it and has been told."""


class Entry(msgspec.Struct, eq=False, gc=False):
    """An item that waits or is parked, and where it stands."""

    id: int
    head: ItemHead
    lane: Lane
    size: int
    """Bytes of its body."""
    segment: Segment
    offset: int
    length: int
    """Bytes of its frame."""


encode_record = msgspec.msgpack.Encoder().encode
decode_head = msgspec.msgpack.Decoder(ItemHead).decode
decode_note = msgspec.msgpack.Decoder(Note).decode


class SegmentContents:
    """What is read of one segment: its records, and the places that are damaged."""

    def __init__(self, path: Path, scan: Scan) -> None:
        last = scan.frames[-1]
        end = last.offset if last.kind == FrameKind.END else last.end
        self.segment = Segment(path, last.segment, end, path.stat().st_size)
        self.damaged = scan.damaged
        self.records: list[Entry | Note] = []
        for frame in scan.frames:
            try:
                if frame.kind != FrameKind.END:
                    self.records.append(self._record(frame))
            except (msgspec.DecodeError, zlib.error):
                self.damaged.append((frame.offset, frame.end))

    def _record(self, frame: Frame) -> Entry | Note:
        if frame.kind == FrameKind.NOTE:
            return decode_note(zlib.decompress(frame.body) if frame.body else frame.head)
        head, place = (
            decode_head(frame.head),
            (self.segment, frame.offset, frame.end - frame.offset),
        )
        return Entry(frame.number, head, (head.device, head.kind), len(frame.body), *place)


def ranges(ids: Iterable[int]) -> list[Range]:
    """Return ascending ids as ranges."""
    found: list[Range] = []
    for number in ids:
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def expanded(found: list[Range]) -> set[int]:
    """Return the ids of ranges."""
    return {id_ for first, last in found for id_ in range(first, last + 1)}
