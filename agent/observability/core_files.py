"""Which kind of core dump a file is, by its first bytes; a Linux core's summary. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import UsageError
from agent.observability.device_coredump import MAGIC as DEVICE_MAGIC
from agent.observability.uploads import FileKind

if TYPE_CHECKING:
    from typing import BinaryIO

_ELF = b"\x7fELF"
_ET_CORE = 4
_PT_LOAD, _PT_NOTE = 1, 4
_NT_PRSTATUS, _NT_PRPSINFO = 1, 3
_MACHINES = {3: "x86", 8: "MIPS", 40: "ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
_MAX_NOTES = 64 * 1024 * 1024
_MAX_FILE = 1 << 48  # bytes: beyond it an offset is damage, and no file system can seek there
_ZEPHYR = b"ZE"
_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"


def recognise(file: BinaryIO) -> FileKind:
    """Return the kind of a core dump. Raises UsageError when it is none."""
    head = file.read(20)
    if head.startswith(DEVICE_MAGIC):
        return FileKind.COREDUMP
    if head.startswith(_ZEPHYR) and head[3:4] == b"\0":
        return FileKind.ZEPHYR_COREDUMP
    if head.startswith(_ELF):
        if _elf_type(head) == _ET_CORE:
            return FileKind.ELF_COREDUMP
        raise UsageError(
            f"{file.name}: an ELF file, but no core dump",
            hint="symbols are sent with `cellagent report file --kind symbols`",
        )
    if head.startswith(_ZIP):
        return FileKind.MAR
    if head.startswith(_GZIP):
        raise UsageError(f"{file.name}: it is compressed", hint="gunzip it first")
    raise UsageError(
        f"{file.name}: no core dump of the device SDK, of Zephyr or of Linux",
        hint="a console log is read with `cellagent capture coredump`",
    )


def _elf_type(head: bytes) -> int:
    return int.from_bytes(head[16:18], "big" if head[5:6] == b"\x02" else "little")


@dataclass(frozen=True, slots=True)
class LinuxCore:
    """What a Linux core dump says of the process that died."""

    machine: str
    command: str
    signal: int | None
    threads: int
    missing: int
    """Bytes by which the file is shorter than its headers say: 0 when it is whole."""
    regions: tuple[tuple[int, int], ...]
    """Address and size in bytes of each memory region."""


def parse_linux_core(file: BinaryIO) -> LinuxCore:
    """Read the headers and notes of an ELF core. Raises ValueError when it is none or cut short."""
    head = file.read(64)
    if not head.startswith(_ELF) or len(head) < 52 or _elf_type(head) != _ET_CORE:
        raise ValueError("it is no ELF core dump")
    order = ">" if head[5] == 2 else "<"
    wide = head[4] == 2
    machine = struct.unpack_from(order + "H", head, 18)[0]
    try:
        table = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)[0]
        size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
        headers = [
            _program_header(file, table + at * size, order, wide=wide) for at in range(count)
        ]
    except struct.error as exc:
        raise ValueError("it ends inside its headers") from exc
    notes = [
        note
        for kind, offset, length, _, _ in headers
        if kind == _PT_NOTE
        for note in _notes(file, offset, length, order)
    ]
    file.seek(0, 2)
    end = file.tell()
    missing = max((offset + length - end for _, offset, length, _, _ in headers), default=0)
    states = [body for kind, body in notes if kind == _NT_PRSTATUS]
    command = next((body for kind, body in notes if kind == _NT_PRPSINFO), b"")
    return LinuxCore(
        _MACHINES.get(machine, f"machine {machine}"),
        # The short name stands before the arguments, which are 80 bytes at the end.
        command[-96:-80].split(b"\0")[0].decode("utf-8", "backslashreplace"),
        struct.unpack_from(order + "i", states[0])[0] if states and len(states[0]) >= 4 else None,
        len(states),
        max(missing, 0),
        tuple((address, in_file) for kind, _, in_file, address, _ in headers if kind == _PT_LOAD),
    )


def _program_header(
    file: BinaryIO, at: int, order: str, *, wide: bool
) -> tuple[int, int, int, int, int]:
    """Return type, offset, size in the file, address and size in memory."""
    if at > _MAX_FILE:
        raise ValueError(f"its program headers are at {at:#x}")
    file.seek(at)
    data = file.read(56 if wide else 32)
    if wide:
        kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack(order + "IIQQQQQQ", data)
    else:
        kind, offset, address, _, in_file, in_memory, _, _ = struct.unpack(order + "8I", data)
    return kind, offset, in_file, address, in_memory


def _notes(file: BinaryIO, offset: int, length: int, order: str) -> list[tuple[int, bytes]]:
    if offset > _MAX_FILE:
        raise ValueError(f"its notes are at {offset:#x}")
    file.seek(offset)
    data = file.read(min(length, _MAX_NOTES))
    if len(data) < length:
        raise ValueError(f"its notes hold {len(data)} of {length} bytes")
    found = []
    at = 0
    while at + 12 <= len(data):
        name, size, kind = struct.unpack_from(order + "III", data, at)
        start = at + 12 + (name + 3 & ~3)
        if start + size > len(data):
            raise ValueError(f"a note at byte {offset + at} runs past the notes")
        found.append((kind, data[start : start + size]))
        at = start + (size + 3 & ~3)
    return found
