"""Frames: the records of an outbox on disk, each with its place, its lengths and a CRC. Pure.

A frame counts only at its own offset, and its CRC begins with the name of the outbox: a copy in an
item's body is no frame. What an earlier segment left in a file is one, of that segment.
"""

import zlib
from collections.abc import Iterable, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

_MAGIC = b"\xc3of"
# Magic, kind, segment, offset, number, bytes of the head, of the body; CRC-32 of all and of both.
_HEADER = Struct("<3sBIQQII")
_CRC = Struct("<I")
HEADER_SIZE = _HEADER.size + _CRC.size


class FrameKind(IntEnum):
    """The kind of a frame, and what its `number` is."""

    ITEM = 1
    """An item; its id."""
    NOTE = 2
    """What became of items; 0."""
    END = 3
    """Nothing follows. The next frame is written over it: what is cut off behind is missed."""


class Record(NamedTuple):
    """The content of a frame."""

    kind: int
    number: int = 0
    head: bytes = b""
    body: bytes = b""


class Frame(NamedTuple):
    """A frame that is whole: its content, and its place."""

    record: Record
    segment: int
    offset: int
    end: int
    """The offset behind it."""


class FrameCodec:
    """Encodes and reads the frames of the outbox `name`."""

    def __init__(self, name: str) -> None:
        self._seed = zlib.crc32(name.encode())

    def encode(self, segment: int, offset: int, records: Iterable[Record]) -> bytes:
        """Return the frames of records that follow one another from this offset of the segment."""
        parts: list[bytes] = []
        for kind, number, head, body in records:
            head_size, body_size = len(head), len(body)
            header = _HEADER.pack(_MAGIC, kind, segment, offset, number, head_size, body_size)
            crc = zlib.crc32(body, zlib.crc32(head, zlib.crc32(header, self._seed)))
            parts += (header, _CRC.pack(crc), head, body)
            offset += HEADER_SIZE + head_size + body_size
        return b"".join(parts)

    def decode(self, data: bytes, at: int, offset: int) -> Frame | None:
        """Return the frame at `at` of `data`, None if there is none of this offset, or no whole."""
        if len(data) - at < HEADER_SIZE or not data.startswith(_MAGIC, at):
            return None
        _, kind, segment, place, number, head_size, body_size = _HEADER.unpack_from(data, at)
        head_at = at + HEADER_SIZE
        body_at = head_at + head_size
        end = body_at + body_size
        if place != offset or end > len(data):
            return None
        head, body = data[head_at:body_at], data[body_at:end]
        crc = zlib.crc32(data[at : at + _HEADER.size], self._seed)
        if zlib.crc32(body, zlib.crc32(head, crc)) != _CRC.unpack_from(data, at + _HEADER.size)[0]:
            return None
        record = Record(kind, number, head, body)
        return Frame(record, segment, offset, offset + end - at)

    def scan(self, data: bytes) -> dict[int, list[Frame]]:
        """Return every frame of a file that is whole, in order, by its segment."""
        found: dict[int, list[Frame]] = {}
        at = 0
        while (at := data.find(_MAGIC, at)) >= 0:
            frame = self.decode(data, at, at)
            if frame is None:
                at += 1
            else:
                found.setdefault(frame.segment, []).append(frame)
                at = frame.end
        return found


def is_sound(frames: Sequence[Frame]) -> bool:
    """Return whether frames of one segment follow one another from its beginning to its end."""
    kinds = [frame.record.kind for frame in frames]
    follow = [frame.offset for frame in frames] == [0, *(frame.end for frame in frames[:-1])]
    return follow and FrameKind.END not in kinds[:-1] and kinds[-1] == FrameKind.END
