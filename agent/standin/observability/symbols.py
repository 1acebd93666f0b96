"""The GNU build id of an ELF file, read from its notes. Pure, and bounded by the file."""

from __future__ import annotations

import struct

_NOTE_SECTION = 7
_BUILD_ID = 3
_SECTION_BYTES = {1: 40, 2: 64}
"""By the class of the file: 32 or 64 bits."""


def gnu_build_id(data: bytes) -> str | None:
    """Return the build id in lower-case hex, None for a file that has none or is no ELF."""
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[4] not in (1, 2) or data[5] not in (1, 2):
        return None
    order = "<" if data[5] == 1 else ">"
    wide = data[4] == 2
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
    size, count = struct.unpack_from(order + "HH", data, 58 if wide else 46)
    if size < _SECTION_BYTES[data[4]] or table + count * size > len(data):
        return None
    left = len(data)  # notes that overlap are no reason to read the file again and again
    for at in range(table, table + count * size, size):
        (kind,) = struct.unpack_from(order + "I", data, at + 4)
        place = order + ("QQ" if wide else "II")
        offset, length = struct.unpack_from(place, data, at + (24 if wide else 16))
        if kind != _NOTE_SECTION or length > left:
            continue
        left -= length
        found = _note(data[offset : offset + length], order)
        if found is not None:
            return found
    return None


def _note(notes: bytes, order: str) -> str | None:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(order + "III", notes, at)
        name_end = at + 12 + name_size
        start = at + 12 + (name_size + 3 & ~3)
        if kind == _BUILD_ID and notes[at + 12 : name_end].rstrip(b"\0") == b"GNU":
            return notes[start : start + size].hex()
        at = start + (size + 3 & ~3)
    return None
