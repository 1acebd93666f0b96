"""Zephyr core dumps: a parser of the binary format. Pure; damage is reported, never repaired.

    "ZE" | u16 version | u16 target | u8 log2(pointer bits) | u8 flag | u32 reason
    A  u16 version | u16 length | registers
    T  u16 version | u16 length | kernel's thread metadata            header version 2
    M  u16 version | pointer start | pointer end | memory
    F  u16 version | u16 length | u32 cpu | pointer thread | registers
    C  u16 version | u32 CRC-32 of all before it                      last

Little endian, packed. A block of another capital letter ends the reading (its length is unknown)
and is kept; anything else where a block should begin is damage.
"""

import struct
import zlib
from dataclasses import dataclass
from enum import Enum

MAGIC = b"ZE"
NEWEST_VERSION = 2

_HEADER = struct.Struct("<2sHHBBI")
HEADER_SIZE = _HEADER.size
_TRAILER_ANNOUNCED = 0x01
_TRAILER = struct.Struct("<cHI")
_BLOCK_VERSIONS = {"A": None, "T": 1, "M": 1, "F": 1, "C": 1}

X86, X86_64, ARM_CORTEX_M, RISC_V, XTENSA, ARM64 = range(1, 7)
TARGETS = {
    0: "unknown",
    X86: "x86",
    X86_64: "x86_64",
    ARM_CORTEX_M: "ARM Cortex-M",
    RISC_V: "RISC-V",
    XTENSA: "Xtensa",
    ARM64: "ARM64",
}

REASONS = {
    0: "CPU exception",
    1: "spurious interrupt",
    2: "stack overflow detected",
    3: "kernel oops",
    4: "kernel panic",
}
_ARM_REASONS = {
    16: "memory fault",
    17: "memory fault: stacking error",
    18: "memory fault: unstacking error",
    19: "memory fault: data access violation",
    20: "memory fault: instruction access violation",
    21: "memory fault: floating point lazy state",
    22: "bus fault",
    23: "bus fault: stacking error",
    24: "bus fault: unstacking error",
    25: "bus fault: precise data access",
    26: "bus fault: imprecise data access",
    27: "bus fault: instruction access",
    28: "bus fault: floating point lazy state",
    29: "usage fault",
    30: "usage fault: division by zero",
    31: "usage fault: unaligned access",
    32: "usage fault: stack overflow",
    33: "usage fault: no coprocessor",
    34: "usage fault: illegal exception return",
    35: "usage fault: illegal EPSR",
    36: "usage fault: undefined instruction",
    37: "secure fault",
    38: "secure fault: invalid entry point",
    39: "secure fault: invalid integrity signature",
    40: "secure fault: invalid exception return",
    41: "secure fault: attribution unit violation",
    42: "secure fault: invalid transition",
    43: "secure fault: lazy state preservation",
    44: "secure fault: lazy state error",
}


class DumpStatus(Enum):
    """How complete a dump is. Only COMPLETE is usable."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    ERROR = "error"
    DAMAGED = "damaged"
    CRC_MISMATCH = "crc_mismatch"
    CRC_MISSING = "crc_missing"
    UNSUPPORTED = "unsupported"
    EMPTY = "empty"
    NOT_A_DUMP = "not_a_dump"


@dataclass(frozen=True, slots=True)
class DumpBlock:
    """One block: start and size of its body in the dump, in bytes."""

    id: str
    version: int
    start: int
    size: int
    address: int | None = None
    """The address of the memory of an M block."""


@dataclass(frozen=True, slots=True)
class DumpHeader:
    """The file header."""

    version: int
    target: int
    pointer_bits: int
    flag: int
    reason: int


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump as far as it can be read; `detail` says why it is not complete."""

    status: DumpStatus
    size: int
    header: DumpHeader | None = None
    blocks: tuple[DumpBlock, ...] = ()
    unknown_tail: bool = False
    detail: str = ""
    dropped_messages: int = 0
    """Log messages that the kit dropped while it printed the dump; none need have been of it."""

    @property
    def usable(self) -> bool:
        """Whether the dump is complete."""
        return self.status is DumpStatus.COMPLETE

    def block(self, letter: str) -> DumpBlock | None:
        """Return the first block of a kind; None if there is none."""
        return next((block for block in self.blocks if block.id == letter), None)


def parse_dump(data: bytes | bytearray) -> Dump:
    """Parse the bytes of one dump. Raises nothing: damage is a status."""
    size = len(data)
    if not data:
        return Dump(DumpStatus.EMPTY, 0, detail="nothing stands between begin and end")
    if not data.startswith(MAGIC[:size]):
        # `pretty` prints each block as if it were a dump.
        detail = "it does not begin with a dump's header: print it whole, with `coredump print`"
        return Dump(DumpStatus.NOT_A_DUMP, size, detail=detail)
    if size < _HEADER.size:
        return Dump(DumpStatus.INCOMPLETE, size, detail="it ends inside the header")
    _, version, target, pointer_log2, flag, reason = _HEADER.unpack_from(data)
    header = DumpHeader(version, target, 1 << min(pointer_log2, 31), flag, reason)
    if version > NEWEST_VERSION:
        detail = f"header version {version}; {NEWEST_VERSION} is the newest known"
        return Dump(DumpStatus.UNSUPPORTED, size, header, detail=detail)
    if pointer_log2 not in (5, 6):
        detail = f"pointers of 2^{pointer_log2} bits"
        return Dump(DumpStatus.DAMAGED, size, header, detail=detail)
    return _Reader(data, header).read()


class _Reader:
    """Walks the blocks of one dump."""

    def __init__(self, data: bytes | bytearray, header: DumpHeader) -> None:
        self.data = data
        self.header = header
        self.blocks: list[DumpBlock] = []
        self.pointer = header.pointer_bits // 8

    def read(self) -> Dump:
        at = _HEADER.size
        while at < len(self.data):
            name = chr(self.data[at])
            if not "A" <= name <= "Z":
                return self._end(
                    DumpStatus.DAMAGED, f"0x{self.data[at]:02x} at byte {at} begins no block"
                )
            if name not in _BLOCK_VERSIONS:
                return self._unknown_tail(name, at)
            ended = self._block(name, at)
            if isinstance(ended, Dump):
                return ended
            at = ended
        if self.header.flag & _TRAILER_ANNOUNCED:
            return self._end(
                DumpStatus.CRC_MISSING, "the CRC that the header announces is not there"
            )
        return self._end(DumpStatus.COMPLETE)

    def _block(self, name: str, at: int) -> Dump | int:
        """Parse the block at `at`; return where it ends, or the dump if the parser ends here."""
        shape = {"M": f"<cH{2 * self.pointer}x", "C": "<cHI", "F": f"<cHHI{self.pointer}x"}.get(
            name, "<cHH"
        )
        size = struct.calcsize(shape)
        if at + size > len(self.data):
            return self._end(DumpStatus.INCOMPLETE, f"it ends inside the header of block {name}")
        _, version, *rest = struct.unpack_from(shape, self.data, at)
        known = _BLOCK_VERSIONS[name]
        if known is not None and version != known:
            return self._end(
                DumpStatus.UNSUPPORTED, f"block {name} of version {version} at byte {at}"
            )
        if name == "C":
            self.blocks.append(DumpBlock("C", version, at + size, 0))
            return self._trailer(at, rest[0])
        address = None
        if name == "M":
            address, end = self._pointers(at + 3)
            if end < address:
                detail = f"memory from 0x{address:x} to 0x{end:x} at byte {at}"
                return self._end(DumpStatus.DAMAGED, detail)
            length = end - address
        else:
            length = rest[0]
        start = at + size
        available = min(length, len(self.data) - start)
        self.blocks.append(DumpBlock(name, version, start, available, address))
        if available < length:
            detail = f"block {name} holds {available} of {length} bytes"
            return self._end(DumpStatus.INCOMPLETE, detail)
        return start + length

    def _pointers(self, at: int) -> tuple[int, int]:
        first = int.from_bytes(self.data[at : at + self.pointer], "little")
        return first, int.from_bytes(self.data[at + self.pointer : at + 2 * self.pointer], "little")

    def _trailer(self, at: int, crc: int) -> Dump:
        rest = len(self.data) - at - _TRAILER.size
        if zlib.crc32(memoryview(self.data)[:at]) != crc:
            return self._end(DumpStatus.CRC_MISMATCH, f"CRC-32 0x{crc:08x} does not agree")
        if rest:
            return self._end(DumpStatus.DAMAGED, f"{rest} bytes follow the CRC")
        return self._end(DumpStatus.COMPLETE)

    def _unknown_tail(self, name: str, at: int) -> Dump:
        """End the parser: what follows stays unread, but an announced CRC is still checked."""
        if self.data.startswith(MAGIC, at):
            return self._end(DumpStatus.DAMAGED, f"another dump begins at byte {at}")
        detail = f"block {name} at byte {at} is of no known kind"
        if self.header.flag & _TRAILER_ANNOUNCED:
            end = len(self.data) - _TRAILER.size
            if end <= at or self.data[end : end + 3] != b"C\x01\x00":
                return self._end(DumpStatus.CRC_MISSING, detail, unknown_tail=True)
            crc = int.from_bytes(self.data[end + 3 :], "little")
            if zlib.crc32(memoryview(self.data)[:end]) != crc:
                return self._end(DumpStatus.CRC_MISMATCH, detail, unknown_tail=True)
        return self._end(DumpStatus.COMPLETE, detail, unknown_tail=True)

    def _end(self, status: DumpStatus, detail: str = "", *, unknown_tail: bool = False) -> Dump:
        return Dump(status, len(self.data), self.header, tuple(self.blocks), unknown_tail, detail)


def target_name(header: DumpHeader) -> str:
    """Return the name of the processor family."""
    return TARGETS.get(header.target, f"target {header.target}")


def reason_name(header: DumpHeader) -> str:
    """Return the name of the reason for which the kernel stopped."""
    name = REASONS.get(header.reason)
    if name is None and header.target == ARM_CORTEX_M:
        name = _ARM_REASONS.get(header.reason)
    return name or f"reason {header.reason}"


def kernel_words(dump: Dump, data: bytes | bytearray) -> tuple[int, ...] | None:
    """Return the words of the kernel's state (block T), each of a pointer's size; None without."""
    block = dump.block("T")
    if block is None or dump.header is None:
        return None
    size = dump.header.pointer_bits // 8
    body = bytes(data[block.start : block.start + block.size])
    return tuple(
        int.from_bytes(body[at : at + size], "little")
        for at in range(0, len(body) - size + 1, size)
    )
