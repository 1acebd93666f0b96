"""What the application's observability SDK keeps: events and a core dump, as chunks and as text.

Formats: the SDK's chunk transport and event serializer; Zephyr's core dump (header version 2).
"""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from at.virtual.kit import Kit

EVENT_MESSAGE = 0x02
HEARTBEAT, TRACE = 1, 2
_LARGEST_CHUNK = 80
_SINGLE, _FIRST, _MIDDLE, _LAST = 0x08, 0x48, 0xC0, 0x80
HARD_FAULT = 0x9400

_RAM = 0x2000_8000
_CORTEX_M = 3
_POINTER_BITS = 5  # log2 of 32
_HEX_BYTES = 32  # in a line of a core dump


def event(kit: Kit, kind: int, information: dict[int, object]) -> bytes:
    """Return a message with one event, as the SDK serializes it."""
    import cbor2

    fields: dict[int, object] = {
        2: kind,
        3: 1,
        7: kit.saved.imei,
        10: "virtual-app",
        9: kit.saved.app_version,
        6: f"{kit.saved.model}dk",
    }
    now = kit.time()
    if now is not None:
        fields[1] = int(now)
    fields[4] = information
    return bytes([EVENT_MESSAGE]) + cbor2.dumps(fields)


def heartbeat(kit: Kit) -> bytes:
    """Return a heartbeat: its metrics in the order of the firmware's definitions."""
    level = kit.heard()[0].rsrp_dbm if kit.heard() else None
    return event(kit, HEARTBEAT, {2: 1, 1: [kit.uptime_ms, kit.restarts, level, kit.firmware]})


def trace(kit: Kit, pc: int, lr: int) -> bytes:
    """Return the reboot event of a hard fault, with a core dump saved."""
    return event(kit, TRACE, {1: HARD_FAULT, 2: pc, 3: lr, 5: 1})


def crc16(data: bytes) -> int:
    """Return CRC-16/XMODEM."""
    value = 0
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1) ^ 0x1021 if value & 0x8000 else value << 1
            value &= 0xFFFF
    return value


def split(message: bytes, largest: int = _LARGEST_CHUNK) -> Iterator[bytes]:
    """Cut a message into chunks of at most `largest` bytes."""
    check = struct.pack("<H", crc16(message))
    if 1 + len(message) + 2 <= largest:
        yield bytes([_SINGLE]) + message + check
        return
    place = 0
    while True:
        number = _varint(place or len(message))
        room = largest - 1 - len(number)
        data = message[place : place + room]
        if place and len(data) + 2 <= room:
            yield bytes([_LAST]) + number + data + check
            return
        yield bytes([_MIDDLE if place else _FIRST]) + number + data
        place += len(data)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def export_lines(message: bytes) -> list[str]:
    """Return the lines by which a message leaves through a UART."""
    return [f"MC:{base64.b64encode(chunk).decode('ascii')}:" for chunk in split(message)]


def core_dump(pc: int, lr: int, sp: int) -> bytes:
    """Return a core dump of a Cortex-M: registers and the stack, its bytes made up."""
    dice = random.Random(pc)  # noqa: S311 - made-up memory, the same for the same fault
    registers = [dice.randrange(1 << 32) for _ in range(5)] + [lr, pc, 0x6100_0000, sp]
    registers += [dice.randrange(1 << 32) for _ in range(8)]
    architecture = struct.pack("<17I", *registers)
    stack = bytes(dice.randrange(256) for _ in range(192))
    header = struct.pack("<2sHHBBI", b"ZE", 2, _CORTEX_M, _POINTER_BITS, 0, 0)
    return (
        header
        + struct.pack("<cHH", b"A", 2, len(architecture))
        + architecture
        + struct.pack("<cHII", b"M", 1, sp, sp + len(stack))
        + stack
    )


def core_dump_lines(dump: bytes, prefix: str) -> list[str]:
    """Return the lines by which a core dump leaves through the log."""
    body = [dump[place : place + _HEX_BYTES].hex() for place in range(0, len(dump), _HEX_BYTES)]
    return [f"{prefix}#CD:{text}" for text in ("BEGIN#", *body, "END#")]


def stack_pointer() -> int:
    """Return where the stack of the thread that crashed lies."""
    return _RAM + 0x1F40
