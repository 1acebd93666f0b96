"""Chunk export lines: `MC:` base64 `:`, anywhere on a line, also several on one line. Pure."""

import base64
import binascii
import re
from dataclasses import dataclass, field

from at.protocol.counts import counted

CHUNK_MARK = b"MC:"
_MARK = re.compile(rb"(?<![A-Za-z])MC:|MC:(?! )")
_MIN_CHUNK = 3  # a header and a CRC: an empty message

_SINGLE, _FIRST = 0x08, 0x48
_FIRST_BYTES = (_SINGLE, _FIRST, 0x80, 0xC0)  # of a chunk of today's form
_SHORTEST_FIRST = 9  # bytes: no device cuts its messages into less
_SHORTEST_BODY = 12  # digits of those
# A mark with a character missing, changed or cut off by a line end, and an export behind it. The
# letters of a mark are also base64 digits, so each pattern is tried.
_DAMAGED_MARKS = [
    re.compile(mark + rb"([A-Za-z0-9+/]{4,}={0,2}):")
    # `ML:` begins a compact log line.
    for mark in (rb"(?:M.?C.:|M[^L]?:|M.C:|.?C:|MC)", rb"MC.", rb"^:?")
]
_NO_MARK = _DAMAGED_MARKS[-1]
_TAIL = 16  # bytes that may stand behind an export on its line: colours, spaces
_LONGEST = 1024  # bytes of a line that is searched for a damaged mark
_BODY = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
MARK = re.compile(rb"MC(?::|%3[Aa])")
"""A chunk's mark, also as an address of the web has it."""
_ESCAPED = re.compile(rb"\\(?:(/)|u00(2[bf]|3d))|%(2[bf]|3[ad])|=(3d)(?=[:=])", re.IGNORECASE)
"""A sign of base64 as PHP, .NET and Java write it in JSON, and an address and a mail do."""


@dataclass(frozen=True, slots=True)
class ChunkLine:
    """A chunk that the kit printed."""

    chunk: bytes
    starts: int = field(default=0, compare=False)
    """Crashes and starts of the kit that were read before it."""


@dataclass(frozen=True, slots=True)
class DamagedChunk:
    """A chunk export that cannot be read. Its chunk is lost: the kit prints each one once."""

    text: bytes
    reason: str


def extract_chunks(line: bytes) -> tuple[list[ChunkLine | DamagedChunk], bytes]:
    """Return the chunks of a line in order, also damaged ones, and the rest of the line."""
    line = _ESCAPED.sub(lambda one: one[1] or bytes.fromhex(one[one.lastindex or 0].decode()), line)
    extracted: list[ChunkLine | DamagedChunk] = []
    around = bytearray()
    read_to = 0  # the line up to here is read
    at = _next_mark(line, 0)
    while at >= 0:
        start = at + len(CHUNK_MARK)
        read = _decode(line, start)
        if isinstance(read, ChunkLine):
            extracted.append(read)
            end = start = line.index(b":", start) + 1
        else:
            # A mark inside a damaged body may begin a good chunk, not a second damage.
            end = _end_of_export(line, start)
            digits = len(_BODY.match(line, start)[0])  # type: ignore[index] # as in _decode
            if line[at - 1 : at].isalpha() and digits < _SHORTEST_BODY:
                at = _next_mark(line, start)  # a word of the log: `eMMC:ready`, `BMC:1.2`
                continue
            if at >= read_to:
                extracted.append(DamagedChunk(line[at:end], read))
        around += line[read_to:at]
        read_to = max(read_to, end)
        at = _next_mark(line, start)
    around += line[read_to:]
    return extracted, bytes(around)


def damaged_mark(line: bytes) -> DamagedChunk | None:
    """Return the chunk of a line whose mark is damaged; None for any other line.

    Its bytes are not used as a chunk: that would be a guess.
    """
    if b":" not in line[-_TAIL:] or len(line) > _LONGEST:
        return None
    for match in (match for mark in _DAMAGED_MARKS for match in mark.finditer(line)):
        read = _decode(line, match.start(1))
        if (
            isinstance(read, ChunkLine)
            and read.chunk[0] in _FIRST_BYTES
            and not (match.re is _NO_MARK and _is_word(match[1], read.chunk))
        ):
            return DamagedChunk(match[0], "its mark is damaged")
    return None


def _is_word(text: bytes, chunk: bytes) -> bool:
    """Return whether a line begins with a word that only seems to be a chunk: `CODE:`, `SIM1:`."""
    if chunk[0] == _SINGLE:
        return binascii.crc_hqx(chunk[1:-2], 0) != int.from_bytes(chunk[-2:], "little")
    return chunk[0] == _FIRST and (len(chunk) < _SHORTEST_FIRST or text.isalpha())


def _decode(line: bytes, start: int) -> ChunkLine | str:
    end = _BODY.match(line, start).end()  # type: ignore[union-attr] # it also matches nothing
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
        return f"no chunk: {counted(len(chunk), 'bytes')}"
    return ChunkLine(chunk)


def _next_mark(line: bytes, start: int) -> int:
    """Return where the next mark stands, -1 if none; the end of "EMMC: no card" is none."""
    mark = _MARK.search(line, start)
    return mark.start() if mark else -1


def _end_of_export(line: bytes, start: int) -> int:
    colon = line.find(b":", start)
    return len(line) if colon < 0 else colon + 1
