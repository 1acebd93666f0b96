"""The headers and notes of an ELF file, as far as a core dump needs them (elf(5)). Pure."""

import struct
from dataclasses import dataclass
from typing import BinaryIO

ELF = b"\x7fELF"
PT_LOAD, PT_NOTE = 1, 4
_SHT_SYMTAB = 2

_MORE = 0xFFFF
"""A count of program headers that means: it is in the first section header."""
_MAX_FILE = 1 << 48  # bytes: beyond it an offset is damage, and no file system can seek there
_NOTE_HEADER = 12


class ElfTruncated(ValueError):
    """The file ends before its headers or notes do."""


@dataclass(frozen=True, slots=True)
class ElfHeader:
    """The ELF header: `order` is "<" or ">" as in `struct`, `wide` whether it has 64 bits."""

    order: str
    wide: bool
    kind: int
    machine: int


@dataclass(frozen=True, slots=True)
class ProgramHeader:
    """A part of the file and where it lies in memory; sizes in bytes."""

    kind: int
    offset: int
    address: int
    in_file: int
    in_memory: int


def read_header(head: bytes) -> ElfHeader | None:
    """Read the first 20 bytes of a file; None when it is no ELF file."""
    if not head.startswith(ELF) or len(head) < 20:
        return None
    order = ">" if head[5] == 2 else "<"
    kind, machine = struct.unpack_from(order + "HH", head, 16)
    return ElfHeader(order, head[4] == 2, kind, machine)


def read_programs(file: BinaryIO, header: ElfHeader) -> list[ProgramHeader]:
    """Return the program headers. Raises ElfTruncated, and ValueError when they are damaged."""
    order, wide = header.order, header.wide
    entry = struct.Struct(order + ("IIQQQQQQ" if wide else "8I"))
    try:
        file.seek(0)
        head = file.read(64)
        table, sections = struct.unpack_from(
            order + ("QQ" if wide else "II"), head, 32 if wide else 28
        )
        size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
        if count and size != entry.size:
            raise ValueError(f"a program header has {size} bytes")
        if count == _MORE:
            first = read_at(file, sections, 64 if wide else 40)
            (count,) = struct.unpack_from(order + "I", first, 44 if wide else 28)
        return [
            _program(entry.unpack(read_at(file, table + at * size, size)), wide=wide)
            for at in range(count)
        ]
    except struct.error as exc:
        raise ElfTruncated("it ends inside its headers") from exc


def has_symbol_table(file: BinaryIO, header: ElfHeader) -> bool:
    """Return whether one of the section headers is of a symbol table: `strip` leaves none.

    Raises ElfTruncated where the file ends before they do.
    """
    order, wide = header.order, header.wide
    entry = struct.Struct(order + ("4xI56x" if wide else "4xI32x"))
    try:
        file.seek(0)
        head = file.read(64)
        (table,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 40 if wide else 32)
        (count,) = struct.unpack_from(order + "H", head, 60 if wide else 48)
        sections = read_at(file, table, entry.size * count)
        kinds = [entry.unpack_from(sections, at * entry.size) for at in range(count)]
    except struct.error as exc:
        raise ElfTruncated("it ends inside its headers") from exc
    return (_SHT_SYMTAB,) in kinds


def read_notes(data: bytes, order: str) -> list[tuple[bytes, int, bytes]]:
    """Return name, number and body of each note. Raises ValueError when one runs past the end."""
    notes = []
    at = 0
    while at + _NOTE_HEADER <= len(data):
        name, size, kind = struct.unpack_from(order + "III", data, at)
        start = at + _NOTE_HEADER + (name + 3 & ~3)
        if start + size > len(data):
            raise ValueError(f"a note at byte {at} of {len(data)} runs past their end")
        text = data[at + _NOTE_HEADER : at + _NOTE_HEADER + name].rstrip(b"\0")
        notes.append((text, kind, data[start : start + size]))
        at = start + (size + 3 & ~3)
    return notes


def read_at(file: BinaryIO, at: int, size: int) -> bytes:
    """Return up to `size` bytes from `at` on. Raises ValueError when no file can be that long."""
    if at > _MAX_FILE:
        raise ValueError(f"it points to byte {at:#x} of itself")
    file.seek(at)
    return file.read(size)


def _program(fields: tuple[int, ...], *, wide: bool) -> ProgramHeader:
    if wide:
        kind, _, offset, address, _, in_file, in_memory, _ = fields
    else:
        kind, offset, address, _, in_file, in_memory, _, _ = fields
    return ProgramHeader(kind, offset, address, in_file, in_memory)
