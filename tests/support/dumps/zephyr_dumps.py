"""Zephyr core dumps as a kit prints them, made by hand from the format's description.

And a kernel in the memory of one, with threads, as an nRF91 build lays them out: by the description
of the kernel's debug table; the places are our own choice.
"""

import struct
import zlib
from dataclasses import dataclass


def header(
    version: int = 2, target: int = 3, bits: int = 5, flag: int = 0, reason: int = 3
) -> bytes:
    return b"ZE" + struct.pack("<HHBBI", version, target, bits, flag, reason)


def arch(version: int = 2, registers: bytes | None = None) -> bytes:
    size = {1: 36, 2: 68, 3: 76}[version]
    if registers is None:
        registers = struct.pack(f"<{size // 4}I", *range(0x100, 0x100 + size // 4))
    return arch_block(version, registers)


def arch_block(version: int, body: bytes) -> bytes:
    return b"A" + struct.pack("<HH", version, len(body)) + body


def threads(body: bytes = b"kernel") -> bytes:
    return b"T" + struct.pack("<HH", 1, len(body)) + body


def memory(start: int, body: bytes, pointer: str = "I") -> bytes:
    return b"M" + struct.pack(f"<H{pointer}{pointer}", 1, start, start + len(body)) + body


def snapshot(body: bytes, pointer: str = "I") -> bytes:
    return b"F" + struct.pack(f"<HHI{pointer}", 1, len(body), 0, 0x20001000) + body


def trailer(dump: bytes) -> bytes:
    return b"C" + struct.pack("<HI", 1, zlib.crc32(dump))


def printed(
    dump: bytes, prefix: str = "[00:00:47.549,863] <err> coredump: ", width: int = 32
) -> bytes:
    """Return the console text of a dump: `width` bytes a line."""
    digits = [dump[at : at + width].hex() for at in range(0, len(dump), width)]
    lines = ["BEGIN#", *digits, "END#"]
    return "".join(f"{prefix}#CD:{line}\r\n" for line in lines).encode()


UNIMPLEMENTED = 0xFFFF_FFFF
# version, current, threads, entry, next, state, options, priority, stack, name, arch, floats ...
OFFSETS = (1, 8, 20, 0x60, 0x54, 13, 12, 14, 0x30, 0x68, 0x90, UNIMPLEMENTED, UNIMPLEMENTED, 0x10)
THREADS = 0x2000_1000
SIZE = 0xA0
STACKS = 0x2000_8000


@dataclass
class Thread:
    name: str
    state: int = 0x80
    priority: int = 0
    pc: int = 0
    entry: int = 0


def address(number: int) -> int:
    """Return where the structure of a thread stands."""
    return THREADS + number * SIZE


def kernel(
    listed: list[Thread], current: int = 0, offsets: tuple[int, ...] = OFFSETS, end: int = 0
) -> bytes:
    """Return the blocks T and M of a kernel with these threads; the last one points to `end`."""
    structure = bytearray(28)
    struct.pack_into("<I", structure, offsets[1], address(current))
    struct.pack_into("<I", structure, offsets[2], address(0))
    structures = bytearray(SIZE * len(listed))
    stacks = bytearray(64 * len(listed))
    for number, thread in enumerate(listed):
        at = number * SIZE
        follows = address(number + 1) if number + 1 < len(listed) else end
        struct.pack_into("<I", structures, at + offsets[4], follows)
        struct.pack_into("<BBb", structures, at + offsets[6], 0, thread.state, thread.priority)
        struct.pack_into("<I", structures, at + offsets[3], thread.entry)
        struct.pack_into("<I", structures, at + offsets[8], STACKS + 64 * number)
        struct.pack_into("<32s", structures, at + offsets[9], thread.name.encode())
        struct.pack_into("<8I", stacks, 64 * number, 0, 1, 2, 3, 12, 14, thread.pc, 0x21000000)
    return (
        threads(bytes(structure))
        + memory(THREADS, bytes(structures))
        + memory(STACKS, bytes(stacks))
    )


def table(
    offsets: tuple[int, ...] = OFFSETS, prefix: str = "_kernel_thread_info_"
) -> dict[str, bytes]:
    """Return the constants of a firmware that has the table."""
    return {
        f"{prefix}offsets": struct.pack(f"<{len(offsets)}I", *offsets),
        f"{prefix}num_offsets": struct.pack("<I", len(offsets)),
        f"{prefix}size_t_size": b"\4",
    }


def partition(dump: bytes, padding: bytes = b"", error: int = 0) -> bytes:
    """Return the flash partition of a dump; `padding` is up to the size of a write."""
    checksum = sum(dump) & 0xFFFF
    head = struct.pack("<2sHIHHi", b"CD", 1, len(dump), 0, checksum, error)
    return head + padding + dump + b"\xff" * 300
