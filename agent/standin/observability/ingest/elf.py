"""Files in ELF: the build id of symbols, and of a core of Linux the signal that ended it. Pure.

Sources: elf(5), `elf_prstatus` of the kernel.
"""

import struct
from collections.abc import Iterator

_PT_NOTE, _NT_PRSTATUS = 4, 1
_SIGNALS = {
    3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    11: "SIGSEGV", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}  # fmt: skip
_NOTE_SECTION = 7
_BUILD_ID = 3
_SECTION_BYTES = {1: 40, 2: 64}
"""Size of a section header by the class of the file: 1 for 32 bits, 2 for 64."""


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
    left = len(data)  # bounds the work for overlapping notes
    for at in range(table, table + count * size, size):
        (kind,) = struct.unpack_from(order + "I", data, at + 4)
        layout = order + ("QQ" if wide else "II")
        offset, length = struct.unpack_from(layout, data, at + (24 if wide else 16))
        if kind != _NOTE_SECTION or length > left:
            continue
        left -= length
        for name, note_kind, content in _notes(data[offset : offset + length], order):
            if (name, note_kind) == (b"GNU", _BUILD_ID):
                return content.hex()
    return None


def linux_signal(data: bytes) -> str | None:
    """Return the name of the signal that ended a process of Linux, None where its core has none.

    It is that of the first thread in the notes.
    """
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return None
    wide, order = data[4] == 2, ">" if data[5] == 2 else "<"
    (start,) = struct.unpack_from(order + ("Q" if wide else "I"), data, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", data, 54 if wide else 42)
    fields = struct.Struct(order + ("I4xQ16xQ" if wide else "II8xI"))
    left = len(data)  # as above
    for at in range(start, start + size * count, max(size, 1)):
        if at + fields.size > len(data):
            break
        kind, offset, length = fields.unpack_from(data, at)
        if kind != _PT_NOTE:
            continue
        notes = data[offset : offset + min(length, left)]
        left -= len(notes)
        if number := _prstatus_signal(notes, order):
            return _SIGNALS.get(number, f"Signal {number}")
    return None


def _prstatus_signal(notes: bytes, order: str) -> int | None:
    for name, kind, content in _notes(notes, order):
        if (name, kind) == (b"CORE", _NT_PRSTATUS) and len(content) >= 14:
            (number,) = struct.unpack_from(order + "h", content, 12)  # `pr_cursig`
            return int(number)
    return None


def _notes(notes: bytes, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield name, type and content of each note of an ELF file, in the byte order of `struct`."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(order + "III", notes, at)
        content = at + 12 + name_size + -name_size % 4
        name = notes[at + 12 : at + 12 + name_size].rstrip(b"\0")
        yield name, kind, notes[content : content + size]
        at = content + size + -size % 4
