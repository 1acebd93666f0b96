"""A Linux core dump: the process, its signal, its threads and the files it had loaded. Pure.

ELF of type CORE; its notes hold one NT_PRSTATUS a thread (the one that died first), one
NT_PRPSINFO, one NT_SIGINFO and one NT_FILE (elf(5), and `elf_prstatus` of the kernel's
linux/elfcore.h).
"""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from agent.json_value import JSONValue
from agent.observability.coredumps import elf
from agent.observability.ingest.event_decode import NotDecodable, date_text, decode_cbor, json_value

NOTE = (b"Memfault", 0x4154454D)
"""Name and number of the note that the service's agent for Linux writes."""

_NAMES = {
    2: "sdk_version",
    3: "captured_date",
    4: "device_serial",
    5: "hardware_version",
    6: "software_type",
    7: "software_version",
    8: "command_line",
    9: "strategy",
    10: "logs",
}


def read_metadata(body: bytes) -> dict[str, JSONValue]:
    """Return the fields of the note by name; {} if it cannot be read."""
    try:
        value = decode_cbor(body)
        if not isinstance(value, dict):
            return {}
        return {
            _NAMES[key]: date_text(item) if key == 3 else json_value(item)
            for key, item in value.items()
            if key in _NAMES
        }
    except NotDecodable:
        return {}


_ET_CORE = 4
_NT_PRSTATUS, _NT_PRPSINFO, _NT_SIGINFO, _NT_FILE = 1, 3, 0x53494749, 0x46494C45
_NT_GNU_BUILD_ID = 3  # in the notes of a module
_MACHINES = {3: "x86", 8: "MIPS", 40: "ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
_MAX_OF_CORE = 64 * 1024 * 1024  # bytes of notes

SIGNALS = {
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    11: "SIGSEGV",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}
"""Signals that leave a core dump."""
_WITH_ADDRESS = frozenset({4, 5, 7, 8, 11})  # their `siginfo` says where

# In the order of the kernel's `elf_gregset_t`, by ELF machine.
_REGISTERS = {
    3: "ebx ecx edx esi edi ebp eax ds es fs gs orig_eax eip cs eflags esp ss",
    40: "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 sp lr pc cpsr orig_r0",
    62: "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs",
    183: " ".join(f"x{number}" for number in range(31)) + " sp pc pstate",
    243: "pc ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 "
    "t3 t4 t5 t6",
}
PROGRAM_COUNTERS, STACK_POINTERS = ("rip", "eip", "pc"), ("rsp", "esp", "sp")
LINKS = ("lr", "ra", "x30")


@dataclass(frozen=True, slots=True)
class LinuxThread:
    """A thread as the kernel saw it; `registers` is empty for an unknown machine."""

    id: int
    signal: int
    registers: dict[str, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """Memory that the core holds; `offset` is where its bytes begin in the file."""

    address: int
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A part of a file that the process had mapped into its memory."""

    start: int
    end: int
    offset: int
    """Bytes from the file's beginning."""
    name: str


@dataclass(frozen=True, slots=True)
class LinuxCore:
    """The content of a Linux core dump: the process that died."""

    machine: str
    command: str
    threads: tuple[LinuxThread, ...]
    """The one that died first."""
    missing: int
    """Bytes by which the file is shorter than its headers say: 0 when it is whole."""
    regions: tuple[Segment, ...]
    fault_address: int | None = None
    """The address that the process accessed or executed; None if the signal has none."""
    files: tuple[MappedFile, ...] = ()
    metadata: Mapping[str, JSONValue] = field(default_factory=dict)
    """The identity of the device, where the service's agent for Linux has written it."""

    @property
    def signal(self) -> int | None:
        """The signal that ended the process; None if the core holds no thread."""
        return self.threads[0].signal if self.threads else None


def is_core(head: bytes) -> bool:
    """Return whether a file that begins with these 20 bytes is an ELF core dump."""
    header = elf.read_header(head)
    return header is not None and header.kind == _ET_CORE


def parse_linux_core(file: BinaryIO) -> LinuxCore:
    """Read the headers and notes of an ELF core. Raises ValueError, ElfTruncated."""
    header = elf.read_header(file.read(20))
    if header is None or header.kind != _ET_CORE:
        raise ValueError("it is no ELF core dump")
    programs = elf.read_programs(file, header)
    # Headers may point to the same bytes again and again.
    size = sum(each.in_file for each in programs if each.kind == elf.PT_NOTE)
    if size > _MAX_OF_CORE:
        raise ValueError(f"its notes are {size} bytes: over {_MAX_OF_CORE}")
    every = [
        note
        for program in programs
        if program.kind == elf.PT_NOTE
        for note in _notes(file, program.offset, program.in_file, header)
    ]
    # Other makers' notes use the same numbers for other things.
    notes = [(kind, body) for name, kind, body in every if name == b"CORE"]
    metadata = next((body for name, kind, body in every if (name, kind) == NOTE), None)
    end = file.seek(0, 2)
    missing = max((each.offset + each.in_file - end for each in programs), default=0)
    first = dict(reversed(notes))
    names = _REGISTERS.get(header.machine, "").split()
    return LinuxCore(
        _MACHINES.get(header.machine, f"machine {header.machine}"),
        # The short name stands before the arguments, which are 80 bytes at the end.
        _text(first.get(_NT_PRPSINFO, b"")[-96:-80].split(b"\0")[0]),
        tuple(_thread(body, header, names) for kind, body in notes if kind == _NT_PRSTATUS),
        max(missing, 0),
        tuple(
            Segment(each.address, each.in_file, each.offset)
            for each in programs
            if each.kind == elf.PT_LOAD
        ),
        _fault_address(first.get(_NT_SIGINFO, b""), header),
        _mapped_files(first.get(_NT_FILE, b""), header),
        {} if metadata is None else read_metadata(metadata),
    )


def damage_of(file: BinaryIO) -> str:
    """Return why a core dump is not whole, "" where it is."""
    try:
        missing = parse_linux_core(file).missing
    except ValueError as damage:
        return str(damage)
    return f"{missing} bytes are missing at the end" if missing else ""


def _notes(
    file: BinaryIO, offset: int, size: int, header: elf.ElfHeader
) -> list[tuple[bytes, int, bytes]]:
    data = elf.read_at(file, offset, size)
    if len(data) < size:
        raise elf.ElfTruncated(f"its notes hold {len(data)} of {size} bytes")
    return elf.read_notes(data, header.order)


def _fault_address(body: bytes, header: elf.ElfHeader) -> int | None:
    """Read `siginfo`: signal, errno, code, then, for a fault, an address."""
    at, size = (16, 8) if header.wide else (12, 4)
    if len(body) < at + size:
        return None
    signal, _, code = struct.unpack_from(header.order + "iii", body)
    # A signal that another process sent (code 0 or less) has a sender in its place.
    if signal not in _WITH_ADDRESS or code <= 0:
        return None
    return _word(body, at, header)


def _mapped_files(body: bytes, header: elf.ElfHeader) -> tuple[MappedFile, ...]:
    """Read NT_FILE: count, page size, start, end and page of each, then their names."""
    word = 8 if header.wide else 4
    count, page = _word(body, 0, header), _word(body, word, header)
    names_at = word * (2 + 3 * count)
    names = body[names_at:].split(b"\0")
    if names_at > len(body) or len(names) <= count:
        return ()  # truncated: the rest of the core is still read
    files = []
    for number in range(count):
        at = word * (2 + 3 * number)
        start, end, offset = (_word(body, at + word * each, header) for each in range(3))
        files.append(MappedFile(start, end, offset * page, _text(names[number])))
    return tuple(files)


def _word(body: bytes, at: int, header: elf.ElfHeader) -> int:
    """Return a word of the process; 0 past the end."""
    size = 8 if header.wide else 4
    return int.from_bytes(body[at : at + size], "big" if header.order == ">" else "little")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _thread(body: bytes, header: elf.ElfHeader, names: list[str]) -> LinuxThread:
    """Read `elf_prstatus`: signal, thread, registers; what a short one lacks raises ValueError."""
    thread_at, registers_at, word = (32, 112, 8) if header.wide else (24, 72, 4)
    if len(body) < registers_at:
        raise ValueError(f"the state of a thread has {len(body)} bytes")
    order = header.order
    count = min(len(names), (len(body) - registers_at) // word)
    values = struct.unpack_from(f"{order}{count}{'Q' if header.wide else 'I'}", body, registers_at)
    (signal,) = struct.unpack_from(order + "h", body, 12)  # `pr_cursig`, the one that gdb writes
    (number,) = struct.unpack_from(order + "i", body, thread_at)
    return LinuxThread(number, signal, dict(zip(names, values, strict=False)))


_MAX_OF_MODULE = 65536  # bytes of its headers, or of its notes


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
    """Return the modules whose build id the core holds.

    The kernel dumps the first page of what the process had mapped from ELF files (core(5), bit 4 of
    `coredump_filter`, set by default): it holds their headers and the note with the build id.
    """
    ranges: dict[str, list[tuple[int, int]]] = {}
    for each in core.files:
        ranges.setdefault(each.name, []).append((each.start, each.end))
    begins = {name: min(parts)[0] for name, parts in ranges.items()}
    modules = []
    for each in core.files:
        if each.offset or each.start != begins[each.name]:
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
    head = _memory(core, file, start, _MAX_OF_MODULE)
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
        notes = _memory(core, file, bias + each.address, min(each.in_memory, _MAX_OF_MODULE))
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
