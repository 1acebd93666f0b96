"""Messages of the device SDK, reassembled from chunks as the service does it. Pure: no I/O.

The stand-in has a decoder of its own, so that a defect of the client is not hidden by the same
defect here. A chunk is a header byte, a varint (not in a single chunk), and data; the
CRC-16 of the whole message is at the end of the last chunk (configuration 1) or, in the
old form, before the data of the first chunk (configuration 0).
"""

import binascii
from dataclasses import dataclass, field

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
MAX_OPEN_BYTES = 64 * 1024 * 1024
"""Of all incomplete messages; beyond it the oldest one is dropped."""
EXPIRY_S = 24 * 3600.0

_CONTINUATION = 0x80
_MORE = 0x40
_CRC_BYTES = 2
_CRC_FIRST, _CRC_LAST = 0, 1
_MAX_VARINT_BYTES = 5


class BadChunk(ValueError):
    """The bytes are no chunk."""


@dataclass(frozen=True, slots=True)
class Received:
    """The result of one chunk: a complete message, problems, and messages that were dropped."""

    message: bytes | None = None
    problems: tuple[str, ...] = ()
    ended_keys: tuple[str, ...] = ()
    """The keys whose message is no longer incomplete: it is whole, broken or dropped."""
    is_incomplete: bool = False
    """The chunk is part of a message that is still incomplete."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    continuation: bool
    more: bool
    crc_place: int
    number: int
    """Total length of the message in a first chunk, offset in it in a continuation."""
    early_crc: int | None
    body: bytes


@dataclass(slots=True)
class _Open:
    """An incomplete message."""

    total: int
    crc_place: int
    early_crc: int | None
    touched_s: float
    data: bytearray = field(default_factory=bytearray)


def crc16(data: bytes) -> int:
    """CRC-16/XMODEM: polynomial 0x1021, initial value 0, nothing reflected."""
    return binascii.crc_hqx(data, 0)


class Reassembler:
    """Reassembles the messages of many devices; a key names the device that sends."""

    def __init__(
        self, max_message_bytes: int = MAX_MESSAGE_BYTES, max_open_bytes: int = MAX_OPEN_BYTES
    ) -> None:
        self.max_message_bytes = max_message_bytes
        self.max_open_bytes = max_open_bytes
        self._open: dict[str, _Open] = {}
        self._open_bytes = 0
        # What the chunk that is being received did:
        self._ended_keys: list[str] = []
        self._extended = False

    def receive(self, key: str, raw: bytes, now_s: float) -> Received:
        """Process the next chunk of `key`. Never raises: a defect becomes one of `problems`."""
        try:
            chunk = _parse(raw)
        except BadChunk as error:
            return Received(problems=(str(error),))
        self._ended_keys, self._extended = [], False
        problems = self._expire(now_s)
        if chunk.continuation:
            message = self._continue(key, chunk, now_s, problems)
        else:
            message = self._begin(key, chunk, now_s, problems)
        self._keep_within_bounds(problems)
        is_incomplete = self._extended and key in self._open
        return Received(message, tuple(problems), tuple(self._ended_keys), is_incomplete)

    def _begin(self, key: str, chunk: _Chunk, now_s: float, problems: list[str]) -> bytes | None:
        dropped = self._drop(key)
        if dropped is not None:
            problems.append(
                f"a new message began when {len(dropped.data)} of {dropped.total} bytes"
                " of the one before had come"
            )
        if not chunk.more:
            crc = chunk.early_crc
            body = chunk.body
            if crc is None:
                body, crc = body[:-_CRC_BYTES], int.from_bytes(body[-_CRC_BYTES:], "little")
            return _checked(body, crc, problems)
        if chunk.number > self.max_message_bytes:
            problems.append(f"a message of {chunk.number} bytes is too long")
            return None
        if len(chunk.body) > chunk.number:
            problems.append("the first chunk is longer than the message that it announces")
            return None
        self._open[key] = _Open(chunk.number, chunk.crc_place, chunk.early_crc, now_s)
        self._extend(self._open[key], chunk.body)
        return None

    def _continue(self, key: str, chunk: _Chunk, now_s: float, problems: list[str]) -> bytes | None:
        waiting = self._open.get(key)
        if waiting is None:
            problems.append(f"the rest of a message at {chunk.number}, whose beginning is missing")
            return None
        have = len(waiting.data)
        body, tail = chunk.body, b""
        if not chunk.more:
            # What follows the CRC is padding: the total length says where the message ends.
            size = max(0, waiting.total - chunk.number)
            body, tail = body[:size], body[size:]
        if chunk.number != have or (chunk.more and have + len(body) > waiting.total):
            end = chunk.number + len(body)
            if end <= have and waiting.data[chunk.number : end] == body and chunk.more:
                return None  # sent again after a lost answer
            self._drop(key)
            problems.append(
                f"a chunk at {chunk.number} of {waiting.total} bytes, where {have} was due"
            )
            return None
        waiting.touched_s = now_s
        self._extend(waiting, body)
        if chunk.more:
            return None
        self._drop(key)
        if len(waiting.data) != waiting.total:
            problems.append(f"it ended after {len(waiting.data)} of {waiting.total} bytes")
            return None
        crc = waiting.early_crc
        if waiting.crc_place == _CRC_LAST:
            if len(tail) < _CRC_BYTES:
                problems.append("the CRC is missing at the end of the last chunk")
                return None
            crc = int.from_bytes(tail[:_CRC_BYTES], "little")
        return _checked(bytes(waiting.data), crc, problems)

    def _extend(self, waiting: _Open, data: bytes) -> None:
        waiting.data += data
        self._open_bytes += len(data)
        self._extended = True

    def _drop(self, key: str) -> _Open | None:
        waiting = self._open.pop(key, None)
        if waiting is not None:
            self._open_bytes -= len(waiting.data)
            self._ended_keys.append(key)
        return waiting

    def _expire(self, now_s: float) -> list[str]:
        late = [key for key, one in self._open.items() if now_s - one.touched_s > EXPIRY_S]
        for key in late:
            self._drop(key)
        return [f"{len(late)} messages waited a day for their rest"] if late else []

    def _keep_within_bounds(self, problems: list[str]) -> None:
        while self._open_bytes > self.max_open_bytes:
            oldest = min(self._open, key=lambda key: self._open[key].touched_s)
            self._drop(oldest)
            problems.append("too many messages wait for their rest: the oldest was dropped")


def _parse(raw: bytes) -> _Chunk:
    if not raw:
        raise BadChunk("an empty chunk")
    head = raw[0]
    channel, crc_place = head & 0x07, head >> 3 & 0x07
    continuation, more = bool(head & _CONTINUATION), bool(head & _MORE)
    if channel:
        raise BadChunk(f"channel {channel} is not known")
    if crc_place not in (_CRC_FIRST, _CRC_LAST):
        raise BadChunk(f"configuration {crc_place} is not known")
    at = 1
    number = 0
    if continuation or more:
        number, at = varint(raw, at, "its length", BadChunk)
    early_crc = None
    if not continuation and crc_place == _CRC_FIRST:
        early_crc = int.from_bytes(raw[at : at + _CRC_BYTES], "little")
        at += _CRC_BYTES
    body = raw[at:]
    if at > len(raw) or (not continuation and not more and early_crc is None and len(body) < 2):
        raise BadChunk(f"{len(raw)} bytes are too short for a chunk")
    return _Chunk(continuation, more, crc_place, number, early_crc, body)


def varint(raw: bytes, at: int, what: str, bad: type[ValueError]) -> tuple[int, int]:
    """Return the number that begins at `at`, and where it ends. Raises `bad`; it is `what`."""
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        if at + index >= len(raw):
            raise bad(f"it ends within {what}")
        byte = raw[at + index]
        value |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            return value, at + index + 1
    raise bad(f"{what} has more than five bytes")


def _checked(message: bytes, crc: int | None, problems: list[str]) -> bytes | None:
    computed = crc16(message)
    if crc != computed:
        problems.append(f"the CRC of the message is {computed:04x}, the chunk says {crc or 0:04x}")
        return None
    return message
