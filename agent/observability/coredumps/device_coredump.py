"""Core dumps of the device SDK for microcontrollers: the `CORE` format, versions 1 and 2. Pure.

"CORE" | u32 version | u32 total size             little endian throughout
blocks: u8 type | 3 reserved | u32 address | u32 length | bytes
"DUMP" | u32 flags | 2 reserved u32               bit 0: memory was left out for want of room

Version 1, of the SDK before 0.20, has no footer: the last block ends it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"CORE"
WITHOUT_FOOTER, NEWEST_VERSION = 1, 2

_HEADER = struct.Struct("<4sII")
_BLOCK = struct.Struct("<B3xII")
_FOOTER = struct.Struct("<4sI8x")
_END = b"DUMP"
_TRUNCATED = 0x01

MACHINES = {3: "x86", 40: "ARM", 94: "Xtensa", 183: "AArch64", 243: "RISC-V"}

_REGISTERS, _MEMORY, _SERIAL, _OLD_VERSION, _HARDWARE, _REASON = 0, 1, 2, 3, 4, 5
_MACHINE, _SOFTWARE, _SOFTWARE_TYPE, _BUILD_ID = 7, 10, 11, 12
_TEXT = {
    _SERIAL: "device_serial",
    _OLD_VERSION: "firmware_version",
    _HARDWARE: "hardware_version",
    _SOFTWARE: "software_version",
    _SOFTWARE_TYPE: "software_type",
}


# Of an ARM Cortex-M, in the order of the SDK's fault handler; its oldest ones end at psr.
_ARM = 40
_ARM_REGISTERS = (*(f"r{number}" for number in range(13)), *("sp", "lr", "pc", "psr", "msp", "psp"))
_ARM_SIZES = (17 * 4, 19 * 4)


class CoredumpTruncated(ValueError):
    """The dump is shorter than its header says."""


class UnsupportedVersion(ValueError):
    """The dump is of a version of the format that is not supported."""


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """Memory that the dump holds."""

    address: int
    size: int


@dataclass(frozen=True, slots=True)
class DeviceCoredump:
    """The content of a dump; the keys of `identity` are those of the JSON interface."""

    size: int
    machine: str
    reason: int | None
    identity: dict[str, str]
    build_id: str | None
    registers: dict[str, int]
    """Of an ARM Cortex-M; empty for every other machine."""
    memory: tuple[MemoryRegion, ...]
    truncated: bool
    """Whether the device had no room for all of its memory."""


def parse_device_coredump(data: bytes) -> DeviceCoredump:
    """Read a dump. Raises ValueError when it is none or is damaged.

    Raises CoredumpTruncated when it ends too soon, UnsupportedVersion for a newer format.
    """
    total, end, flags = _check_frame(data)
    blocks = list(_blocks(data, end))
    bodies = {kind: body for kind, _, body in blocks if kind != _MEMORY}
    machine = _number(bodies.get(_MACHINE))
    return DeviceCoredump(
        size=total,
        machine=_machine_name(machine),
        reason=_number(bodies.get(_REASON)),
        identity={
            name: bodies[kind].decode("utf-8", "backslashreplace")
            for kind, name in _TEXT.items()
            if kind in bodies
        },
        build_id=bodies[_BUILD_ID].hex() if _BUILD_ID in bodies else None,
        registers=_arm_registers(machine, bodies.get(_REGISTERS, b"")),
        memory=tuple(
            MemoryRegion(address, len(body)) for kind, address, body in blocks if kind == _MEMORY
        ),
        truncated=bool(flags & _TRUNCATED),
    )


def without_rest(data: bytes) -> bytes:
    """Return a dump without what stood behind it where a debugger read it: erased flash."""
    try:
        return data[: _check_frame(data)[0]]
    except ValueError:
        return data


def damage_of(data: bytes) -> str:
    """Return why a dump is not whole, "" where it is, or is of a newer version."""
    try:
        parse_device_coredump(data)
    except UnsupportedVersion:
        pass
    except ValueError as damage:
        return str(damage)
    return ""


def _check_frame(data: bytes) -> tuple[int, int, int]:
    """Check header and footer; return where the dump and its blocks end, and the footer's flags."""
    if not data.startswith(MAGIC):
        raise ValueError("it does not begin with CORE")
    if len(data) < _HEADER.size:
        raise CoredumpTruncated(f"{len(data)} bytes are too short for a core dump")
    _, version, total = _HEADER.unpack_from(data)
    if not WITHOUT_FOOTER <= version <= NEWEST_VERSION:
        raise UnsupportedVersion(
            f"version {version} of the format; {NEWEST_VERSION} is the newest known"
        )
    if total > len(data):
        raise CoredumpTruncated(f"the header says {total} bytes, {len(data)} are there")
    if version == WITHOUT_FOOTER:
        return total, total, 0
    end = total - _FOOTER.size
    if end < _HEADER.size:
        raise CoredumpTruncated(f"{total} bytes are too short for a header and a footer")
    magic, flags = _FOOTER.unpack_from(data, end)
    if magic != _END:
        raise ValueError("the footer is missing")
    return total, end, int(flags)


def _blocks(data: bytes, end: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield type, address and body."""
    at = _HEADER.size
    while at < end:
        if at + _BLOCK.size > end:
            raise ValueError(f"{end - at} bytes at {at} are no block")
        kind, address, length = _BLOCK.unpack_from(data, at)
        at += _BLOCK.size
        if at + length > end:
            raise ValueError(f"block {kind} at byte {at} is {length} bytes long, past the footer")
        yield kind, address, data[at : at + length]
        at += length


def _arm_registers(machine: int | None, body: bytes) -> dict[str, int]:
    if machine is None or machine & 0xFFFF != _ARM or len(body) not in _ARM_SIZES:
        return {}
    words = struct.unpack(f"<{len(body) // 4}I", body)
    return dict(zip(_ARM_REGISTERS, words, strict=False))


def _number(body: bytes | None) -> int | None:
    return int.from_bytes(body, "little") if body is not None and len(body) == 4 else None


def _machine_name(number: int | None) -> str:
    # The high half is a subtype.
    return "unknown" if number is None else MACHINES.get(number & 0xFFFF, f"machine {number}")
