"""Zephyr core dumps as a kit prints them, made by hand from the format's description."""

import struct
import zlib


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
