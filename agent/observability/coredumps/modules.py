"""The programs and libraries in a Linux core dump: their build ids, and where they were loaded.

The kernel dumps the first page of what it had mapped from ELF files (core(5), bit 4 of
`coredump_filter`, set by default): it holds their headers, and the note with the build id.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.observability.coredumps.elf import (
    PT_LOAD,
    PT_NOTE,
    read_at,
    read_header,
    read_notes,
    read_programs,
)

if TYPE_CHECKING:
    from typing import BinaryIO

    from agent.observability.coredumps.linux_core import LinuxCore

_NT_GNU_BUILD_ID = 3
_MOST = 65536  # bytes of headers, or of notes


@dataclass(frozen=True, slots=True)
class Module:
    """An ELF file in the memory of the process; `bias` is by how much its addresses moved."""

    name: str
    build_id: str
    bias: int
    ranges: tuple[tuple[int, int], ...]

    def holds(self, address: int) -> bool:
        """Tell whether `address` lies in it."""
        return any(start <= address < end for start, end in self.ranges)


def modules(core: LinuxCore, file: BinaryIO) -> list[Module]:
    """Return the modules whose build id the core holds."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for each in core.files:
        ranges.setdefault(each.name, []).append((each.start, each.end))
    found = []
    for each in core.files:
        if each.offset or each.start != min(ranges[each.name])[0]:
            continue
        try:
            read = _build_id(core, file, each.start)
        except ValueError:
            continue  # its first page is damaged, or not in the core
        if read is not None:
            found.append(Module(each.name, *read, tuple(ranges[each.name])))
    return found


def _build_id(core: LinuxCore, file: BinaryIO, start: int) -> tuple[str, int] | None:
    """Return the build id and the bias of the module whose ELF header is at `start`."""
    head = _memory(core, file, start, _MOST)
    header = read_header(head)
    if header is None:
        return None
    programs = read_programs(io.BytesIO(head), header)
    loads = [each.address for each in programs if each.kind == PT_LOAD]
    if not loads:
        return None
    bias = start - (min(loads) & ~0xFFF)
    for each in programs:
        if each.kind != PT_NOTE:
            continue
        notes = _memory(core, file, bias + each.address, min(each.in_memory, _MOST))
        for name, number, body in read_notes(notes, header.order):
            if (name, number) == (b"GNU", _NT_GNU_BUILD_ID):
                return body.hex(), bias
    return None


def _memory(core: LinuxCore, file: BinaryIO, address: int, size: int) -> bytes:
    """Return up to `size` bytes of the process, from one segment."""
    for segment in core.regions:
        within = address - segment.address
        if 0 <= within < segment.size:
            return read_at(file, segment.offset + within, min(size, segment.size - within))
    return b""
