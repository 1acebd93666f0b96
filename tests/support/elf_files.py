"""ELF files made by hand from the format's description: a firmware with symbols, a Linux core."""

from __future__ import annotations

import struct

ARM, X86_64 = 40, 62


def firmware(functions: dict[str, tuple[int, int]], build_id: bytes = b"\x01" * 20) -> bytes:
    """Return a 32-bit ARM executable with these functions (address, size) and a build id."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in functions)
    symbols = bytes(16)
    for name, (address, size) in functions.items():
        at = strings.index(name.encode() + b"\0")
        # STT_FUNC, global; Thumb functions have bit 0 of their address set.
        symbols += struct.pack("<IIIBBH", at, address | 1, size, 0x12, 0, 1)
    note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
    names = b"\0.symtab\0.strtab\0.note.gnu.build-id\0.shstrtab\0"
    parts = [symbols, strings + bytes(-len(strings) % 4), note, names]
    starts = [52]
    for part in parts:
        starts.append(starts[-1] + len(part))

    def section(name: bytes, kind: int, at: int, link: int = 0, entry: int = 0) -> bytes:
        offset, size = starts[at], len(parts[at])
        where = names.index(name + b"\0")
        return struct.pack("<10I", where, kind, 0, 0, offset, size, link, 0, 4, entry)

    sections = bytes(40)
    sections += section(b".symtab", 2, 0, link=2, entry=16)
    sections += section(b".strtab", 3, 1)
    sections += section(b".note.gnu.build-id", 7, 2)
    sections += section(b".shstrtab", 3, 3)
    head = b"\x7fELF\x01\x01\x01" + bytes(9)
    head += struct.pack("<HHIIIIIHHHHHH", 2, ARM, 1, 0, 0, starts[4], 0, 52, 0, 0, 40, 5, 4)
    return head + b"".join(parts) + sections


def linux_core(
    command: bytes = b"modemd", signal: int = 11, threads: int = 2, memory: bytes = bytes(64)
) -> bytes:
    """Return a 64-bit core dump of a process."""
    status = struct.pack("<i", signal) + bytes(332)
    info = bytes(40) + command.ljust(16, b"\0") + b"modemd --now".ljust(80, b"\0")
    notes = b"".join(_note(1, status) for _ in range(threads)) + _note(3, info)
    start = 64 + 2 * 56
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 4, X86_64, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 4, 0, start, 0, 0, len(notes), 0, 4)
    at = start + len(notes)
    head += struct.pack("<IIQQQQQQ", 1, 6, at, 0x400000, 0, len(memory), len(memory), 4096)
    return head + notes + memory


def _note(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<III", 5, len(body), kind) + b"CORE\0\0\0\0" + body
