"""ELF files made by hand from the format's description: a firmware with symbols, a Linux core.

And the least of a program with debug information and a build id, for ARM.
"""

import struct
from dataclasses import dataclass

ARM, X86_64 = 40, 62
DATA = 0x8000
"""Address of the constants of a firmware."""
BUILD_ID = bytes(range(20))
_HEADER_BYTES, _SECTION_BYTES = 52, 40
_PROGBITS, _STRTAB, _NOTE, _SYMTAB = 1, 3, 7, 2


def firmware(
    functions: dict[str, tuple[int, int]],
    build_id: bytes = b"\x01" * 20,
    objects: dict[str, bytes] | None = None,
    others: dict[bytes, bytes] | None = None,
    stripped: bool = False,
) -> bytes:
    """Return a 32-bit ARM executable with these functions (address, size) and a build id.

    `objects` are constants by the name of their symbol, one behind the other at DATA; `others` are
    further sections.
    """
    objects, others = objects or {}, others or {}
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in [*functions, *objects])
    symbols = bytes(16)
    for name, (address, size) in functions.items():
        at = strings.index(b"\0" + name.encode() + b"\0") + 1
        # STT_FUNC, global; Thumb functions have bit 0 of their address set.
        symbols += struct.pack("<IIIBBH", at, address | 1, size, 0x12, 0, 1)
    place = DATA
    for name, content in objects.items():
        at = strings.index(b"\0" + name.encode() + b"\0") + 1
        symbols += struct.pack("<IIIBBH", at, place, len(content), 0x11, 0, 5)
        place += len(content)
    data = b"".join(objects.values())
    note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
    names = b"\0.symtab\0.strtab\0.note.gnu.build-id\0.shstrtab\0.rodata\0"
    names += b"".join(name + b"\0" for name in others)
    parts = [symbols, strings + bytes(-len(strings) % 4), note, names, data, *others.values()]
    starts = [52]
    for part in parts:
        starts.append(starts[-1] + len(part))

    def section(
        name: bytes, kind: int, at: int, link: int = 0, entry: int = 0, address: int = 0
    ) -> bytes:
        offset, size = starts[at], len(parts[at])
        where = names.index(name + b"\0")
        return struct.pack("<10I", where, kind, 0, address, offset, size, link, 0, 4, entry)

    sections = bytes(40)
    sections += bytes(40) if stripped else section(b".symtab", 2, 0, link=2, entry=16)
    sections += section(b".strtab", 3, 1)
    sections += section(b".note.gnu.build-id", 7, 2)
    sections += section(b".shstrtab", 3, 3)
    sections += section(b".rodata", 1, 4, address=DATA)
    for at, name in enumerate(others, 5):
        sections += section(name, 1, at)
    head = b"\x7fELF\x01\x01\x01" + bytes(9)
    head += struct.pack(
        "<HHIIIIIHHHHHH", 2, ARM, 1, 0, 0, starts[-1], 0, 52, 0, 0, 40, 6 + len(others), 4
    )
    return head + b"".join(parts) + sections


def line_tables(*sequences: tuple[int, int, int]) -> dict[bytes, bytes]:
    """Return the debug sections (DWARF 3) of main.c: of each sequence address, bytes and line."""
    program = b"".join(
        struct.pack("<BBBI", 0, 5, 2, address)  # set the address
        + bytes([3, line - 1 & 127, 1, 2, size])  # advance the line, one row, advance the address
        + bytes([0, 1, 1])  # the sequence ends
        for address, size, line in sequences
    )
    # One byte an instruction, lines -5 to 8 of a special opcode, nine standard opcodes; no folder.
    head = struct.pack("<BBbBB9B", 1, 1, -5, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1) + b"\0"
    head += b"main.c\0\0\0\0\0"
    lines = struct.pack("<HI", 3, len(head)) + head + program
    unit = struct.pack("<HIBBI", 3, 0, 4, 1, 0)  # of the first abbreviation, its lines at 0
    return {
        b".debug_info": struct.pack("<I", len(unit)) + unit,
        b".debug_abbrev": bytes([1, 0x11, 0, 0x10, 0x06, 0, 0, 0]),
        b".debug_line": struct.pack("<I", len(lines)) + lines,
    }


@dataclass(frozen=True)
class LoadedProgram:
    """A program in the memory of a process: its first page holds its headers and its build id."""

    build_id: bytes
    start: int = 0x1000
    bias: int = 0
    name: bytes = b"/usr/bin/modemd"

    def page(self, wide: bool) -> bytes:
        head_size, entry = (64, 56) if wide else (52, 32)
        note = struct.pack("<III", 4, len(self.build_id), 3) + b"GNU\0" + self.build_id
        notes_at = head_size + 2 * entry
        address = self.start - self.bias
        head = b"\x7fELF" + (b"\x02" if wide else b"\x01") + b"\x01\x01" + bytes(9)
        head += struct.pack(
            f"<HHI{'QQQ' if wide else 'III'}IHHHHHH",
            *(3, X86_64, 1, 0, head_size, 0, 0, head_size, entry, 2, 0, 0, 0),
        )
        head += _segment(1, 0, address, notes_at + len(note), wide)
        head += _segment(4, notes_at, address + notes_at, len(note), wide)
        return head + note

    def files(self, wide: bool) -> bytes:
        """Return the content of NT_FILE: this program and a part of it that holds no headers."""
        word = "Q" if wide else "I"
        parts = [
            (self.start, self.start + 0x1000, 0),
            (self.start + 0x1000, self.start + 0x2000, 1),
        ]
        body = struct.pack(f"<2{word}", len(parts), 0x1000)
        body += b"".join(struct.pack(f"<3{word}", *part) for part in parts)
        return body + (self.name + b"\0") * len(parts)


def linux_core(
    command: bytes = b"modemd",
    signal: int = 11,
    threads: int = 2,
    memory: bytes = bytes(64),
    machine: int = X86_64,
    wide: bool = True,
    program: LoadedProgram | None = None,
    code: int = 1,
    metadata: bytes = b"",
) -> bytes:
    """Return a core dump of a process; register n of each thread holds 0x1000 + n.

    Its signal stands in `pr_cursig`, as gdb writes it; the kernel writes it at the begin, too.
    It touched 0x1234, if `code` says that the kernel sent the signal.
    """
    registers = struct.pack("<40" + "IQ"[wide], *range(0x1000, 0x1028))
    before = (32, 76) if wide else (24, 44)
    info = bytes(40) + command.ljust(16, b"\0") + b"modemd --now".ljust(80, b"\0")
    notes = b"".join(
        _note(1, struct.pack(f"<12xh{before[0] - 14}xi{before[1]}x", signal, 100 + at) + registers)
        for at in range(threads)
    ) + _note(3, info)
    details = struct.pack("<iii", signal, 0, code) + (struct.pack("<4xQ" if wide else "<I", 0x1234))
    notes += _note(0x53494749, details.ljust(128, b"\0"))
    if metadata:
        notes += struct.pack("<III", 9, len(metadata), 0x4154454D) + b"Memfault\0\0\0\0"
        notes += metadata + bytes(-len(metadata) % 4)
    address = 0x400000
    if program is not None:
        notes += _note(0x46494C45, program.files(wide))
        address, memory = program.start, program.page(wide)
    head_size, entry = (64, 56) if wide else (52, 32)
    start = head_size + 2 * entry
    head = b"\x7fELF" + (b"\x02" if wide else b"\x01") + b"\x01\x01" + bytes(9)
    words = "QQQ" if wide else "III"
    head += struct.pack(
        f"<HHI{words}IHHHHHH", 4, machine, 1, 0, head_size, 0, 0, head_size, entry, 2, 0, 0, 0
    )
    head += _segment(4, start, 0, len(notes), wide)
    head += _segment(1, start + len(notes), address, len(memory), wide)
    return head + notes + memory


def _segment(kind: int, at: int, address: int, size: int, wide: bool) -> bytes:
    if wide:
        return struct.pack("<IIQQQQQQ", kind, 6, at, address, 0, size, size, 4)
    return struct.pack("<8I", kind, at, address, 0, size, size, 6, 4)


def _note(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<III", 5, len(body), kind) + b"CORE\0\0\0\0" + body


def small_elf(build_id: bytes = BUILD_ID) -> bytes:
    """Return a small ARM program with debug information and a build id."""
    note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
    sections = [
        (b"", 0, b"", 0, 0),
        (b".text", _PROGBITS, bytes(16), 0, 0),
        (b".note.gnu.build-id", _NOTE, note, 0, 0),
        (b".debug_info", _PROGBITS, bytes(11), 0, 0),
        (b".debug_abbrev", _PROGBITS, bytes(1), 0, 0),
        (b".symtab", _SYMTAB, bytes(16), 6, 16),
        (b".strtab", _STRTAB, b"\0", 0, 0),
    ]
    names = b"".join(name + b"\0" for name, *_ in sections) + b".shstrtab\0"
    sections.append((b".shstrtab", _STRTAB, names, 0, 0))
    body, table, at = b"", b"", 0
    for name, kind, content, link, entry in sections:
        offset = _HEADER_BYTES + len(body) if kind else 0
        table += struct.pack(
            "<IIIIIIIIII", at, kind, 2 if kind in (_PROGBITS, _NOTE) else 0, 0,
            offset, len(content), link, 0, 4 if kind else 0, entry,
        )  # fmt: skip
        at += len(name) + 1
        body += content.ljust(-(-len(content) // 4) * 4, b"\0")
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 40, 1, 0, 0, _HEADER_BYTES + len(body), 0x05000200,
        _HEADER_BYTES, 32, 0, _SECTION_BYTES, len(sections), len(sections) - 1,
    )  # fmt: skip
    return header + body + table
