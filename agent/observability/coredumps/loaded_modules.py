"""The programs and libraries that a Linux core dump names, with their build ids. Pure.

The kernel dumps the first page of what the process had mapped from ELF files (core(5), bit 4 of
`coredump_filter`, set by default), and it holds their headers and the note with the build id.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import BinaryIO

from agent.observability.coredumps import elf
from agent.observability.coredumps.linux_core import LinuxCore

_NT_GNU_BUILD_ID = 3
_MAX_BYTES = 65536  # bytes of headers, or of notes


@dataclass(frozen=True, slots=True)
class Module:
    """An ELF file in the memory of the process; `bias` is by how much its addresses moved."""

    name: str
    build_id: str
    bias: int
    ranges: tuple[tuple[int, int], ...]

    def holds(self, address: int) -> bool:
        """Return whether `address` lies in it."""
        return any(start <= address < end for start, end in self.ranges)


def loaded_modules(core: LinuxCore, file: BinaryIO) -> list[Module]:
    """Return the modules whose build id the core holds."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for each in core.files:
        ranges.setdefault(each.name, []).append((each.start, each.end))
    modules = []
    for each in core.files:
        if each.offset or each.start != min(ranges[each.name])[0]:
            continue
        try:
            read = _build_id(core, file, each.start)
        except ValueError:
            continue  # its first page is damaged, or not in the core
        if read is not None:
            modules.append(Module(each.name, *read, tuple(ranges[each.name])))
    return modules


def _build_id(core: LinuxCore, file: BinaryIO, start: int) -> tuple[str, int] | None:
    """Return the build id and the bias of the module whose ELF header is at `start`."""
    head = _memory(core, file, start, _MAX_BYTES)
    header = elf.read_header(head)
    if header is None:
        return None
    programs = elf.read_programs(io.BytesIO(head), header)
    loads = [each.address for each in programs if each.kind == elf.PT_LOAD]
    if not loads:
        return None
    bias = start - (min(loads) & ~0xFFF)
    for each in programs:
        if each.kind != elf.PT_NOTE:
            continue
        notes = _memory(core, file, bias + each.address, min(each.in_memory, _MAX_BYTES))
        for name, number, body in elf.read_notes(notes, header.order):
            if (name, number) == (b"GNU", _NT_GNU_BUILD_ID):
                return body.hex(), bias
    return None


def _memory(core: LinuxCore, file: BinaryIO, address: int, size: int) -> bytes:
    """Return up to `size` bytes of the process, from one segment."""
    for segment in core.regions:
        within = address - segment.address
        if 0 <= within < segment.size:
            return elf.read_at(file, segment.offset + within, min(size, segment.size - within))
    return b""
