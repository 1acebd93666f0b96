"""The core dump of the device SDK: header, blocks, footer, little endian. Pure.

The last block ends a dump of version 1, which has no footer.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"CORE"
_HEADER = struct.Struct("<4sII")
_BLOCK = struct.Struct("<B3xII")
_FOOTER = struct.Struct("<4sIII")
_FOOTER_MAGIC = b"DUMP"
_WITHOUT_FOOTER, _WITH_FOOTER = 1, 2

_TEXTS = {2: "device_serial", 4: "hardware_version", 10: "software_version", 11: "software_type"}
_REASON, _BUILD_ID, _MACHINE, _MEMORY = 5, 12, 7, 1
_FIRMWARE_VERSION = 3
_MACHINES = {40: "arm", 243: "riscv", 94: "xtensa", 183: "aarch64", 3: "x86"}


class BadCoredump(ValueError):
    """The bytes are not a complete core dump of the SDK."""


@dataclass(frozen=True, slots=True)
class Coredump:
    """The metadata of a dump. A text or number is None where its block is missing."""

    size_bytes: int
    reason: int | None
    device_serial: str | None
    hardware_version: str | None
    software_type: str | None
    software_version: str | None
    build_id: str | None
    machine: str | None
    regions: tuple[tuple[int, int], ...]
    """Address and length in bytes of each memory region."""
    truncated: bool


def parse_coredump(data: bytes) -> Coredump:
    """Parse a core dump. Raises BadCoredump."""
    end, truncated = _frame(data)
    texts: dict[str, str] = {}
    numbers: dict[int, int] = {}
    regions: list[tuple[int, int]] = []
    build_id = None
    for kind, address, content in _blocks(data, end):
        if kind in _TEXTS:
            texts[_TEXTS[kind]] = content.decode("utf-8", "replace")
        elif kind == _FIRMWARE_VERSION:
            texts.setdefault("software_version", content.decode("utf-8", "replace"))
        elif kind in (_REASON, _MACHINE):
            numbers[kind] = int.from_bytes(content[:4], "little")
        elif kind == _BUILD_ID:
            build_id = content.hex()
        elif kind == _MEMORY:
            regions.append((address, len(content)))
    machine = numbers.get(_MACHINE)
    return Coredump(
        size_bytes=len(data),
        reason=numbers.get(_REASON),
        device_serial=texts.get("device_serial"),
        hardware_version=texts.get("hardware_version"),
        software_type=texts.get("software_type"),
        software_version=texts.get("software_version"),
        build_id=build_id,
        machine=None if machine is None else _MACHINES.get(machine & 0xFFFF, "unknown"),
        regions=tuple(regions),
        truncated=truncated,
    )


def _frame(data: bytes) -> tuple[int, bool]:
    """Check header and footer; return the end of the blocks, and whether memory is missing."""
    if len(data) < _HEADER.size:
        raise BadCoredump(f"{len(data)} bytes are too short for a core dump")
    magic, version, size = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise BadCoredump("it does not begin as a core dump does")
    if version not in {_WITHOUT_FOOTER, _WITH_FOOTER}:
        raise BadCoredump(f"version {version} is not known")
    if size != len(data):
        raise BadCoredump(f"it has {len(data)} bytes and announces {size}")
    if version == _WITHOUT_FOOTER:
        return size, False
    end = size - _FOOTER.size
    if end < _HEADER.size:
        raise BadCoredump(f"{size} bytes are too short for a header and a footer")
    magic, flags, _, _ = _FOOTER.unpack_from(data, end)
    if magic != _FOOTER_MAGIC:
        raise BadCoredump("it does not end as a core dump does")
    return end, bool(flags & 1)


def _blocks(data: bytes, end: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield type, address and content of each block."""
    at = _HEADER.size
    while at < end:
        if at + _BLOCK.size > end:
            raise BadCoredump(f"a block at {at} is cut short")
        kind, address, length = _BLOCK.unpack_from(data, at)
        at += _BLOCK.size
        if length > end - at:
            raise BadCoredump(f"a block of {length} bytes at {at} does not fit")
        yield kind, address, data[at : at + length]
        at += length
