"""A Linux core dump: who died of what, where each thread stood. Pure.

ELF of type CORE; its notes hold one NT_PRSTATUS a thread (the one that died first) and one
NT_PRPSINFO (elf(5), and `elf_prstatus` of the kernel's linux/elfcore.h).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

ELF = b"\x7fELF"
_ET_CORE = 4
_PT_LOAD, _PT_NOTE = 1, 4
_NT_PRSTATUS, _NT_PRPSINFO = 1, 3
_MACHINES = {3: "x86", 8: "MIPS", 40: "ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
_MAX_NOTES = 64 * 1024 * 1024
_MAX_FILE = 1 << 48  # bytes: beyond it an offset is damage, and no file system can seek there

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
"""Of those that leave a core dump."""

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


@dataclass(frozen=True, slots=True)
class LinuxThread:
    """A thread as the kernel saw it; `registers` is empty for a machine that is not known."""

    id: int
    signal: int
    registers: dict[str, int]


@dataclass(frozen=True, slots=True)
class LinuxCore:
    """What a Linux core dump says of the process that died."""

    machine: str
    command: str
    threads: tuple[LinuxThread, ...]
    """The one that died first."""
    missing: int
    """Bytes by which the file is shorter than its headers say: 0 when it is whole."""
    regions: tuple[tuple[int, int], ...]
    """Address and size in bytes of each memory region."""

    @property
    def signal(self) -> int | None:
        """What the process died of; None where no thread tells."""
        return self.threads[0].signal if self.threads else None


def is_core(head: bytes) -> bool:
    """Tell by its first 18 bytes whether an ELF file is a core dump."""
    order = ">" if head[5:6] == b"\x02" else "<"
    return len(head) >= 18 and bool(struct.unpack_from(order + "H", head, 16)[0] == _ET_CORE)


def parse_linux_core(file: BinaryIO) -> LinuxCore:
    """Read the headers and notes of an ELF core. Raises ValueError when it is none or cut short."""
    head = file.read(64)
    if not head.startswith(ELF) or len(head) < 52 or not is_core(head):
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
        for kind, offset, length, _ in headers
        if kind == _PT_NOTE
        for note in _notes(file, offset, length, order)
    ]
    file.seek(0, 2)
    end = file.tell()
    missing = max((offset + length - end for _, offset, length, _ in headers), default=0)
    command = next((body for kind, body in notes if kind == _NT_PRPSINFO), b"")
    return LinuxCore(
        _MACHINES.get(machine, f"machine {machine}"),
        # The short name stands before the arguments, which are 80 bytes at the end.
        command[-96:-80].split(b"\0")[0].decode("utf-8", "backslashreplace"),
        tuple(
            _thread(body, order, _REGISTERS.get(machine, "").split(), wide=wide)
            for kind, body in notes
            if kind == _NT_PRSTATUS
        ),
        max(missing, 0),
        tuple((address, in_file) for kind, _, in_file, address in headers if kind == _PT_LOAD),
    )


def _thread(body: bytes, order: str, names: list[str], *, wide: bool) -> LinuxThread:
    """Read `elf_prstatus`: signal, thread, registers; what a short one lacks raises ValueError."""
    thread_at, registers_at, word = (32, 112, 8) if wide else (24, 72, 4)
    if len(body) < registers_at:
        raise ValueError(f"the state of a thread has {len(body)} bytes")
    count = min(len(names), (len(body) - registers_at) // word)
    values = struct.unpack_from(f"{order}{count}{'Q' if wide else 'I'}", body, registers_at)
    (signal,) = struct.unpack_from(order + "i", body)
    (number,) = struct.unpack_from(order + "i", body, thread_at)
    return LinuxThread(number, signal, dict(zip(names, values, strict=False)))


def _program_header(
    file: BinaryIO, at: int, order: str, *, wide: bool
) -> tuple[int, int, int, int]:
    """Return type, offset, size in the file and address."""
    if at > _MAX_FILE:
        raise ValueError(f"its program headers are at {at:#x}")
    file.seek(at)
    data = file.read(56 if wide else 32)
    if wide:
        kind, _, offset, address, _, in_file, _, _ = struct.unpack(order + "IIQQQQQQ", data)
    else:
        kind, offset, address, _, in_file, _, _, _ = struct.unpack(order + "8I", data)
    return kind, offset, in_file, address


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
        # Other makers' notes use the same numbers for other things.
        if data[at + 12 : at + 12 + name].rstrip(b"\0") == b"CORE":
            found.append((kind, data[start : start + size]))
        at = start + (size + 3 & ~3)
    return found
