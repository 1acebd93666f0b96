"""What is written in the frames of an outbox, and what is read of its segments."""

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent.json_value import JSONValue
from agent.outbox.frames import Frame, FrameKind, is_sound
from agent.outbox.items import ItemKind, Lane
from agent.outbox.segments import Segment

Range = tuple[int, int]
"""First and last."""


class Boot(NamedTuple):
    """A boot of the host in which items were added."""

    name: str
    offset_s: float
    """The time of the clock less the seconds since the boot, as it was set last."""


class Naming(NamedTuple):
    """The items up to `last` that were added as `unnamed` are of `device`."""

    unnamed: str
    last: int
    device: str


class ItemHead(msgspec.Struct, array_like=True, frozen=True):
    """What is written of an item besides its id and its body."""

    kind: ItemKind
    device: str
    message: int
    """The id of the item that begins its message."""
    captured: float
    added: float
    boot: int = 0
    """The number of the boot in which it was added; 0 if that is not known."""
    since_boot: float = 0.0
    meta: dict[str, JSONValue] = {}
    mark: bytes = b""
    """By which a duplicate is known; empty where none is looked for."""
    key: str = ""
    """Its idempotency key where this outbox did not give it."""


class ItemNote(msgspec.Struct, omit_defaults=True, frozen=True):
    """What is known of an item since it was added; a new field only needs a default."""

    refusals: int = 0
    parked: str | None = None
    """Why it is parked; None while it waits."""


class Note(msgspec.Struct, omit_defaults=True):
    """What is known besides the items; the first of a segment needs no earlier one."""

    last_id: int = 0
    """The highest id that was given."""
    counts: dict[str, int] = {}
    boots: dict[int, Boot] = {}
    """By number; the last is the one of now."""
    namings: list[Naming] = []
    in_doubt: dict[Lane, Range] = {}
    """The items of each lane's last request that may or may not have arrived."""
    live: list[Range] | None = None
    """The items that are still there; None in the note of a transaction."""
    gone: list[Range] = []
    """Of one transaction."""
    items: dict[int, ItemNote] = {}
    """What a transaction changed; in the first of a segment all."""
    recent: dict[bytes, float] = {}
    """Mark of an item -> when it was added; only in the first of a segment."""


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
_decode_head = msgspec.msgpack.Decoder(ItemHead).decode
_decode_note = msgspec.msgpack.Decoder(Note).decode


class SegmentContents:
    """What is read of one segment in a file."""

    def __init__(self, path: Path, number: int, frames: Sequence[Frame]) -> None:
        size, last = path.stat().st_size, frames[-1]
        self.segment = Segment(path, number, size, last.offset, is_sound(frames))
        self.records: list[Entry | Note] = []
        for frame in frames:
            try:
                if frame.record.kind != FrameKind.END:
                    self.records.append(self._record(frame))
            except (ValueError, zlib.error):
                self.segment.is_sound = False

    def _record(self, frame: Frame) -> Entry | Note:
        kind, number, content, body = frame.record
        if kind == FrameKind.NOTE:
            return _decode_note(zlib.decompress(body) if body else content)
        head = _decode_head(content)
        place = self.segment, frame.offset, frame.end - frame.offset
        return Entry(number, head, (head.device, head.kind), len(body), *place)


def ranges(ids: Sequence[int]) -> list[Range]:
    """Return ascending ids as ranges."""
    if ids and ids[-1] - ids[0] == len(ids) - 1:
        return [(ids[0], ids[-1])]
    found: list[Range] = []
    for number in ids:
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def expanded(found: Iterable[Range]) -> set[int]:
    """Return the ids of ranges."""
    return {id_ for first, last in found for id_ in range(first, last + 1)}
