"""Chunks, version 2: messages cut into chunks, and reassembled. Pure.

    single  08 | message                | crc
    first   48 | varint(message length) | data
    middle  C0 | varint(offset)         | data
    last    80 | varint(offset)         | data, may be none | crc | padding, ignored

The CRC is CRC-16/XMODEM over the whole message, little endian. In the old form (configuration
bits 0 in the first chunk) it stands right before the data of the first chunk instead.
"""

import binascii
from collections.abc import Iterator
from dataclasses import dataclass

from at.protocol.counts import counted

MIN_MTU = 9
"""Bytes: header, the longest varint, one byte of data, CRC. A device gives none below it."""
MAX_MESSAGE = 16 * 1024 * 1024
"""Bytes of one message: a longer one is a damaged length."""

CONTINUATION = 0x80
MORE = 0x40
_CRC_AT_END = 0x08
_CONFIGURATION = 0x38
_CHANNEL = 0x07
CRC_SIZE = 2
_VARINT_MAX = 5


@dataclass(frozen=True, slots=True)
class DamagedMessage:
    """Chunks that make no complete message."""

    reason: str


def is_continuation(chunk: bytes) -> bool:
    """Return whether a chunk continues a message that another one began."""
    return chunk[:1] >= bytes([CONTINUATION])


def first_byte(chunk: bytes) -> bytes:
    """Return the first byte of the message that a chunk begins, if any. Raises ValueError."""
    at = 1
    if chunk[0] & MORE:
        _, at = decode_varint(chunk, at)
    if not chunk[0] & _CRC_AT_END:
        at += CRC_SIZE
    return chunk[at : at + 1]


def crc16(data: bytes) -> int:
    """CRC-16/XMODEM: polynomial 0x1021, start 0, not reflected. "123456789" gives 0x31C3."""
    return binascii.crc_hqx(data, 0)


def encode_varint(value: int) -> bytes:
    """Return base-128, low group first, bit 7 set on all bytes but the last."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: bytes, start: int = 0) -> tuple[int, int]:
    """Return the number at `start` and where it ends. Raises ValueError when it is none."""
    value = 0
    for count, byte in enumerate(data[start : start + _VARINT_MAX]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, start + count + 1
    raise ValueError("a number in the header does not end, or is longer than 32 bits")


def encode(message: bytes, mtu: int) -> Iterator[bytes]:
    """Cut `message` into chunks of at most `mtu` bytes, as the device SDK does.

    Raises ValueError when `mtu` is below MIN_MTU.
    """
    if mtu < MIN_MTU:
        raise ValueError(f"a chunk holds at least {MIN_MTU} bytes, not {mtu}")
    return _encode(message, mtu)


def _encode(message: bytes, mtu: int) -> Iterator[bytes]:
    trailer = crc16(message).to_bytes(CRC_SIZE, "little")
    if 1 + len(message) + CRC_SIZE <= mtu:
        yield bytes([_CRC_AT_END]) + message + trailer
        return
    head = bytes([_CRC_AT_END | MORE]) + encode_varint(len(message))
    offset = mtu - len(head)
    yield head + message[:offset]
    while True:
        number = encode_varint(offset)
        data = message[offset : offset + mtu - 1 - len(number)]
        offset += len(data)
        # The CRC is never divided: where it does not fit, one more chunk carries it alone.
        if 1 + len(number) + len(data) + CRC_SIZE > mtu:
            yield bytes([CONTINUATION | MORE]) + number + data
            continue
        yield bytes([CONTINUATION]) + number + data + trailer
        return


class Reassembler:
    """Reassembles the messages of one device; knows no clock.

    `receive` takes chunks in the order of the device. A chunk that was already received is a
    duplicate and adds nothing; a gap makes the message damaged until the next first chunk.
    """

    def __init__(self, max_message: int = MAX_MESSAGE) -> None:
        self.max_message = max_message
        self._data = bytearray()
        self._total = 0
        self._crc: int | None = None
        self._open = False
        self._skipping = False
        """Continuations are skipped, as the damage is reported, until a first chunk comes."""
        self._last = b""
        """The last chunk of the previous message: if it comes again, it is a duplicate."""

    def receive(self, chunk: bytes) -> list[bytes | DamagedMessage]:
        """Read the next chunk; return the message that it completed, its CRC correct, or broke."""
        results: list[bytes | DamagedMessage] = []
        try:
            if _continues(chunk):
                message = self._continue(chunk)
            else:
                results += self._give_up("it was started again")
                message = self._start(chunk)
        except ValueError as exc:  # it breaks the format, and is not used
            results.append(DamagedMessage(str(exc)))
        else:
            if message is not None:
                results.append(message)
        return results

    def finish(self) -> list[DamagedMessage]:
        """Return an unfinished message as damaged; no more chunks will come."""
        return self._give_up("no more chunks came")

    def _start(self, chunk: bytes) -> bytes | None:
        header, at, total, crc = chunk[0], 1, None, None
        self._skipping = True  # unless this chunk proves to be a good first one
        if header & MORE:
            total, at = decode_varint(chunk, at)
        if not header & _CRC_AT_END:
            crc, at = int.from_bytes(chunk[at : at + CRC_SIZE], "little"), at + CRC_SIZE
            if len(chunk) < at:
                raise ValueError(f"{len(chunk)} bytes are too short for a chunk")
        if total is None:
            end = len(chunk) if crc is not None else len(chunk) - CRC_SIZE
            if end < at:
                raise ValueError(f"{len(chunk)} bytes are too short for a chunk with its CRC")
            message = chunk[at:end]
            _check(message, crc if crc is not None else int.from_bytes(chunk[end:], "little"))
            self._skipping = False
            return message
        if total > self.max_message:
            raise ValueError(f"a message of {total} bytes is announced, over {self.max_message}")
        if len(chunk) - at > total:
            raise ValueError(f"{len(chunk) - at} bytes of a message of {total}")
        self._data = bytearray(memoryview(chunk)[at:])
        self._total, self._crc = total, crc
        self._open, self._skipping, self._last = True, False, b""
        return None

    def _continue(self, chunk: bytes) -> bytes | None:
        offset, at = decode_varint(chunk, 1)
        if self._skipping or (chunk == self._last and not self._open):
            return None
        if not self._open:
            self._skipping = True
            raise ValueError(f"a continuation at {offset} without the first chunk")
        more = bool(chunk[0] & MORE)
        have = len(self._data)
        data = memoryview(chunk)[at:]
        if offset < have and offset + len(data) <= have and self._data[offset:].startswith(data):
            return None  # sent twice
        if offset != have:
            self._drop()
            raise ValueError(
                f"a gap: {have} of {self._total} bytes were received, then offset {offset}"
            )
        rest = self._total - have
        if more and len(data) > rest:
            self._drop()
            raise ValueError(f"{len(data)} bytes where {rest} of {self._total} are missing")
        if more:
            self._data += data
            return None
        crc_size = CRC_SIZE if self._crc is None else 0
        if len(data) < rest + crc_size:
            self._drop()
            raise ValueError(f"the last chunk holds {len(data)} bytes, not {rest} and the CRC")
        self._data += data[:rest]
        crc = self._crc
        if crc is None:
            crc = int.from_bytes(data[rest : rest + CRC_SIZE], "little")
        message = bytes(self._data)
        self._data, self._open, self._last = bytearray(), False, chunk
        _check(message, crc)
        return message

    def _drop(self) -> None:
        self._data, self._open, self._skipping = bytearray(), False, True

    def _give_up(self, why: str) -> list[DamagedMessage]:
        if not self._open:
            return []
        have = len(self._data)
        self._data, self._open = bytearray(), False
        return [DamagedMessage(f"{have} of {self._total} bytes were received, then {why}")]


def _continues(chunk: bytes) -> bool:
    """Return whether a chunk continues a message. Raises ValueError for a header of no form."""
    if not chunk:
        raise ValueError("an empty chunk")
    header = chunk[0]
    if header & _CHANNEL:
        raise ValueError(f"channel {header & _CHANNEL} in header byte 0x{header:02x}")
    if header & CONTINUATION:
        if header & _CONFIGURATION:
            raise ValueError(f"reserved bits are set in header byte 0x{header:02x}")
        return True
    if header & _CONFIGURATION not in (0, _CRC_AT_END):
        raise ValueError(f"unknown configuration in header byte 0x{header:02x}")
    return False


def _check(message: bytes, crc: int) -> None:
    if (own := crc16(message)) != crc:
        received = counted(len(message), "bytes")
        raise ValueError(
            f"CRC 0x{crc:04x} does not agree with the {received} received (0x{own:04x})"
        )
