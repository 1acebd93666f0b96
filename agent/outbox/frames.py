"""Frames: the records of an outbox on disk, each with its place, its lengths and its CRCs. Pure.

A frame counts only at its own offset of its own segment, and its CRCs begin with the name of the
outbox: a copy in an item's body, or what an earlier segment left on the disk, is no frame.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

_MAGIC = b"\xc3ob"
# Magic, kind, segment, offset, number, bytes of the head, of the body, CRC-32 of both; its own CRC.
_HEADER = Struct("<3sBIQQIII")
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


class Frame(NamedTuple):
    """A frame with a sound header; one that is not `whole` has damaged bytes behind it."""

    kind: int
    segment: int
    offset: int
    number: int
    head: bytes
    body: bytes
    end: int
    """The offset behind it."""
    whole: bool


class FrameCodec:
    """Encodes and reads the frames of the outbox `name`."""

    def __init__(self, name: str) -> None:
        self._seed = zlib.crc32(name.encode())

    def encode(
        self,
        kind: int,
        segment: int,
        offset: int,
        number: int,
        head: bytes = b"",
        body: bytes = b"",
    ) -> bytes:
        """Return the frame, for this offset of this segment."""
        crc = zlib.crc32(body, zlib.crc32(head, self._seed))
        header = _HEADER.pack(_MAGIC, kind, segment, offset, number, len(head), len(body), crc)
        return b"".join((header, _CRC.pack(zlib.crc32(header, self._seed)), head, body))

    def decode(self, data: bytes, at: int, offset: int, segment: int | None = None) -> Frame | None:
        """Return the frame at `at` of `data`, None if it is none of this place."""
        if len(data) - at < HEADER_SIZE or not data.startswith(_MAGIC, at):
            return None
        crc_at, head_at = at + _HEADER.size, at + HEADER_SIZE
        if zlib.crc32(data[at:crc_at], self._seed) != _CRC.unpack_from(data, crc_at)[0]:
            return None
        _, kind, its, told, number, head_size, body_size, crc = _HEADER.unpack_from(data, at)
        if told != offset or segment not in {None, its}:
            return None
        head = data[head_at : head_at + head_size]
        body = data[head_at + head_size : head_at + head_size + body_size]
        whole = zlib.crc32(body, zlib.crc32(head, self._seed)) == crc
        whole = whole and len(head) + len(body) == head_size + body_size
        end = offset + HEADER_SIZE + head_size + body_size
        return Frame(kind, its, offset, number, head, body, end, whole)

    def scan(self, data: bytes, segment: int) -> Scan:
        """Find every frame that is whole, up to the end.

        They are those of `segment`, or where there is none of it, as two files may have been
        swapped, of the segment whose frame comes first.
        """
        first = self._next(data, 0, segment) or self._next(data, 0, None)
        found = Scan(first.segment if first else None, [], [])
        at = 0
        while at < len(data):
            frame = self.decode(data, at, at, found.segment)
            if frame is None or not frame.whole:
                # The lengths of a sound header are right; else the next sound one is looked for.
                behind = frame or self._next(data, at + 1, found.segment)
                resume = len(data) if behind is None else behind.end if frame else behind.offset
                found.damaged.append((at, resume))
                at = resume
                continue
            found.frames.append(frame)
            if frame.kind == FrameKind.END:
                return found
            at = frame.end
        found.damaged.append((at, at))  # its end is lost
        return found

    def _next(self, data: bytes, at: int, segment: int | None) -> Frame | None:
        """Return the next frame with a sound header at or behind `at`."""
        while (at := data.find(_MAGIC, at)) >= 0:
            frame = self.decode(data, at, at, segment)
            if frame is not None:
                return frame
            at += 1
        return None


class Scan(NamedTuple):
    """What the bytes of a segment hold."""

    segment: int | None
    frames: list[Frame]
    damaged: list[tuple[int, int]]
    """From and to which offset no frame is whole."""
