"""The GNU build id of an ELF file, read from its notes. Pure, and bounded by the file."""

from __future__ import annotations

import struct

_NOTE_SECTION = 7
_BUILD_ID = 3
_MAX_SECTIONS = 100_000


def gnu_build_id(data: bytes) -> str | None:
    """Return the build id in lower-case hex, None for a file that has none or is no ELF."""
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[4] not in (1, 2) or data[5] not in (1, 2):
        return None
    order = "<" if data[5] == 1 else ">"
    wide = data[4] == 2
    try:
        if wide:
            (table,) = struct.unpack_from(order + "Q", data, 40)
            size, count = struct.unpack_from(order + "HH", data, 58)
        else:
            (table,) = struct.unpack_from(order + "I", data, 32)
            size, count = struct.unpack_from(order + "HH", data, 46)
        for index in range(min(count, _MAX_SECTIONS)):
            at = table + index * size
            (kind,) = struct.unpack_from(order + "I", data, at + 4)
            if kind != _NOTE_SECTION:
                continue
            place = order + ("QQ" if wide else "II")
            offset, length = struct.unpack_from(place, data, at + (24 if wide else 16))
            found = _note(data[offset : offset + length], order)
            if found is not None:
                return found
    except struct.error:
        return None
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
