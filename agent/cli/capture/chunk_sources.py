"""Chunks and dumps that commands read: from console text, lines of JSON or stored chunks."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

from agent.cli.framework.saved_text import read_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.console.dump_lines import CapturedDump

STORED = b"CHNK"
"""Precedes each chunk of a file of stored chunks; then its length in four bytes, big endian."""

_LONGEST_LINE = 4 * 1024 * 1024  # a chunk as a line of JSON has two digits a byte


def read_chunks(source: BinaryIO) -> Iterator[bytes | str]:
    """Yield the chunks of console text, of lines of JSON, or of a file of stored chunks.

    A str stands for a lost chunk and says why it is lost.
    """
    from agent.console.dump_lines import CapturedDump

    for found in chunks_and_dumps(read_pieces(source)):
        if not isinstance(found, CapturedDump):
            yield found


def chunks_and_dumps(rest: Iterator[bytes]) -> Iterator[bytes | str | CapturedDump]:
    """Yield what `read_chunks` does of a file that comes in pieces, and its Zephyr dumps."""
    from agent.console.chunk_lines import ChunkLine, DamagedChunk
    from agent.console.dump_lines import CapturedDump
    from agent.console.line_classifier import ConsoleReader
    from agent.console.log_line import LogLine

    head = b""
    while len(head) < len(STORED) and (data := next(rest, b"")):
        head += data
    if head.startswith(STORED):
        yield from _stored(head + b"".join(rest))
        return
    for item in ConsoleReader(max_line=_LONGEST_LINE).read(chain([head], rest)):
        if isinstance(item, CapturedDump):
            yield item
        elif isinstance(item, ChunkLine):
            yield item.chunk
        elif isinstance(item, DamagedChunk):
            yield item.reason
        elif isinstance(item, LogLine) and item.line.lstrip().startswith("{"):
            chunk = _json_chunk(item.line)
            if chunk is not None:
                yield chunk


def _stored(data: bytes) -> Iterator[bytes | str]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        chunk = data[at + 8 : at + 8 + size]
        if not data.startswith(STORED, at) or len(chunk) < size or not size:
            yield f"the stored chunk at byte {at} does not add up"
            return
        yield chunk
        at += 8 + size


def _json_chunk(line: str) -> bytes | str | None:
    """Return the chunk of a line of `capture chunks`, why it is damaged, or None for other text."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return "a line of JSON that cannot be read" if '"chunk"' in line else None
    if not isinstance(value, dict) or "chunk" not in value:
        return None
    try:
        return bytes.fromhex(value["chunk"])
    except (TypeError, ValueError):
        return f"no hex digits: {str(value['chunk'])[:40]!r}"
