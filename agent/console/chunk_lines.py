"""Chunk export lines: `MC:` base64 `:`, anywhere on a line, several on one. Pure."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

MARK = b"MC:"
_MIN_CHUNK = 3  # a header and a CRC: an empty message

_BODY = re.compile(rb"[A-Za-z0-9+/]*={0,2}")


@dataclass(frozen=True, slots=True)
class ChunkLine:
    """A chunk that the kit printed."""

    chunk: bytes


@dataclass(frozen=True, slots=True)
class DamagedChunk:
    """A chunk export that cannot be read: its chunk is lost, as the kit prints each once."""

    text: bytes
    reason: str


def lift_chunks(line: bytes) -> tuple[list[ChunkLine | DamagedChunk], bytes]:
    """Return every chunk and every damaged one of a line, in order, and what stood around them."""
    found: list[ChunkLine | DamagedChunk] = []
    around = bytearray()
    taken = 0  # the line up to here is lifted out or kept
    at = line.find(MARK)
    while at >= 0:
        start = at + len(MARK)
        read = _read(line, start)
        if isinstance(read, ChunkLine):
            found.append(read)
            end = start = line.index(b":", start) + 1
        else:
            # A mark inside a damaged body may begin a good chunk, not a second damage.
            end = _extent(line, start)
            if at >= taken:
                found.append(DamagedChunk(line[at:end], read))
        around += line[taken:at]
        taken = max(taken, end)
        at = line.find(MARK, start)
    around += line[taken:]
    return found, bytes(around)


def _read(line: bytes, start: int) -> ChunkLine | str:
    end = _BODY.match(line, start).end()  # type: ignore[union-attr] # it matches nothing, too
    if end == len(line):
        return "the line ends inside the chunk"
    if line[end : end + 1] != b":":
        return f"no base64 character: {line[end : end + 1]!r}"
    body = line[start:end]
    if not body:
        return "an empty chunk"
    if len(body) % 4:
        return f"{len(body)} characters are no whole base64"
    try:
        chunk = base64.b64decode(body, validate=True)
    except ValueError as exc:
        return str(exc)
    if len(chunk) < _MIN_CHUNK:
        return f"{len(chunk)} bytes are no chunk"
    return ChunkLine(chunk)


def _extent(line: bytes, start: int) -> int:
    colon = line.find(b":", start)
    return len(line) if colon < 0 else colon + 1
