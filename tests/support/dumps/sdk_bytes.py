"""What the device SDK puts on the wire, written out by hand for tests: chunks, messages, dumps."""

import base64
import struct
from typing import Any

import cbor2

# The worked example that the SDK's publisher documents: one heartbeat of TESTSERIAL.
EXAMPLE_SINGLE = bytes.fromhex(
    "0802a702010301076a5445535453455249414c0a6d746573742d736f667477617265096a312e302e302d7465737406"
    "6d746573742d686172647761726504a101a1726368756e6b5f746573745f737563636573730131e4"
)
EXAMPLE_MESSAGE = EXAMPLE_SINGLE[1:-2]
EXAMPLE_PAIR = (
    bytes.fromhex(
        "485402a702010301076a5445535453455249414c0a6d746573742d736f667477617265096a312e302e302d746573"
    ),
    bytes.fromhex(
        "802c74066d746573742d686172647761726504a101a1726368756e6b5f746573745f737563636573730131e4"
    ),
)
EXAMPLE_LINES = (
    "MC:SFQCpwIBAwEHalRFU1RTRVJJQUwKbXRlc3Qtc29mdHdhcmUJajEuMC4wLXRlcw==:\n"
    "MC:gCx0Bm10ZXN0LWhhcmR3YXJlBKEBoXJjaHVua190ZXN0X3N1Y2Nlc3MBMeQ=:\n"
)


def crc16(data: bytes) -> int:
    """Bit by bit, so that it shares nothing with the code under test."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return crc


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def single(message: bytes) -> bytes:
    return b"\x08" + message + struct.pack("<H", crc16(message))


def chunks(message: bytes, size: int, *, pad: bool = False) -> list[bytes]:
    """Split a message as the SDK does into chunks of at most `size` bytes."""
    if len(message) + 3 <= size:
        return [single(message)]
    out: list[bytes] = []
    at = 0
    while True:
        head = b"\x48" + varint(len(message)) if not out else b"\xc0" + varint(at)
        room = size - len(head)
        rest = message[at:]
        if out and len(rest) + 2 <= room:
            last = b"\x80" + varint(at) + rest + struct.pack("<H", crc16(message))
            return [*out, last.ljust(size, b"\xba") if pad else last]
        out.append(head + rest[:room])
        at += len(rest[:room])


def exported(message: bytes, size: int = 46) -> bytes:
    """Return what the SDK logs of a message: a line for each chunk."""
    return b"".join(
        b"[00:00:01.000,000] <inf> mflt: MC:" + base64.b64encode(chunk) + b":\r\n"
        for chunk in chunks(message, size)
    )


def event_message(event: dict[Any, Any] | list[Any]) -> bytes:
    return b"\x02" + cbor2.dumps(event)


def heartbeat(
    serial: str | None = None, metrics: dict[str, Any] | None = None, **more: Any
) -> dict[Any, Any]:
    event: dict[Any, Any] = {2: 1, 3: 1}
    if serial is not None:
        event[7] = serial
    event |= {10: "modem-app", 9: "2.4.1", 6: "nrf9161dk", 4: {1: metrics or {"uptime_s": 7}}}
    return event | more


def trace(serial: str | None = None, reason: int = 0x8001) -> dict[Any, Any]:
    event = heartbeat(serial)
    return event | {2: 2, 4: {1: reason, 2: 0x37581, 3: 0x3750E}}


def block(kind: int, content: bytes, address: int = 0) -> bytes:
    return struct.pack("<B3xII", kind, address, len(content)) + content


def coredump(
    serial: str = "352656100441776",
    reason: int = 0x9400,
    memory: bytes = bytes(64),
    *,
    version: int = 2,
) -> bytes:
    """A whole core dump of the SDK in the usual order of its blocks; version 1 has no footer."""
    body = b"".join([
        block(0, bytes(range(64))),
        block(12, bytes(range(20))),
        block(2, serial.encode()),
        block(10, b"2.4.1"),
        block(11, b"modem-app"),
        block(4, b"nrf9161dk"),
        block(7, struct.pack("<I", 40)),
        block(5, struct.pack("<I", reason)),
        block(1, memory, 0x2000_0000),
    ])  # fmt: skip
    footer = struct.pack("<4sIII", b"DUMP", 0, 0, 0) if version > 1 else b""
    size = 12 + len(body) + len(footer)
    return struct.pack("<4sII", b"CORE", version, size) + body + footer


def run_lengths(plain: bytes) -> bytes:
    """Code as the SDK does: a run of two at the start of a sequence, of three behind literals."""
    coded = bytearray()
    literal = 0  # where the literal bytes that are not written yet begin
    at = 0
    while at < len(plain):
        end = at + 1
        while end < len(plain) and plain[end] == plain[at]:
            end += 1
        if end - at >= (2 if at == literal else 3):
            coded += _literals(plain[literal:at])
            coded += varint((end - at) << 1) + plain[at : at + 1]
            literal = end
        at = end
    return bytes(coded + _literals(plain[literal:]))


def _literals(run: bytes) -> bytes:
    return varint((len(run) << 1) - 1) + run if run else b""
