"""A message out of chunks: its kind, the project key that it may carry, its payload. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MAX_EXPANDED_BYTES = 16 * 1024 * 1024

_KEY_FOLLOWS = 0x40
_RUN_LENGTHS = 0x80
_KEY_BYTES = 32
_MAX_VARINT_BYTES = 5


class Kind(Enum):
    """What the low six bits of the first byte say."""

    COREDUMP = 1
    EVENT = 2
    LOG = 3
    CDR = 4
    MAR = 5


class BadMessage(ValueError):
    """The bytes are no message of a known kind."""


@dataclass(frozen=True, slots=True)
class Message:
    """A whole message. `project_key` overrides the key of the request when it is there."""

    kind: Kind
    project_key: str | None
    payload: bytes


def parse_message(data: bytes) -> Message:
    """Read the header of a message and expand its run lengths. Raises BadMessage."""
    if not data:
        raise BadMessage("an empty message")
    head, payload = data[0], data[1:]
    try:
        kind = Kind(head & 0x3F)
    except ValueError:
        raise BadMessage(f"message type {head & 0x3F} is not known") from None
    key = None
    if head & _KEY_FOLLOWS:
        # The key travels as a C string: its NUL belongs to it, and is not the payload's.
        if len(payload) <= _KEY_BYTES or payload[_KEY_BYTES]:
            raise BadMessage("the project key of the message is cut short")
        try:
            key = payload[:_KEY_BYTES].decode("ascii")
        except UnicodeDecodeError:
            raise BadMessage("the project key of the message is no text") from None
        payload = payload[_KEY_BYTES + 1 :]
    if head & _RUN_LENGTHS:
        payload = expand_runs(payload)
    return Message(kind, key, payload)


def expand_runs(data: bytes, limit: int = MAX_EXPANDED_BYTES) -> bytes:
    """Undo the SDK's run-length code: n > 0 repeats one byte, n < 0 is -n bytes as they are.

    Raises BadMessage when a run is cut short or the whole is longer than `limit` bytes.
    """
    out = bytearray()
    at = 0
    while at < len(data):
        count, at = _signed_varint(data, at)
        if count == 0:
            raise BadMessage("a run of no bytes")
        size = abs(count)
        if len(out) + size > limit:
            raise BadMessage(f"it expands to more than {limit} bytes")
        taken = data[at : at + (1 if count > 0 else size)]
        if len(taken) != (1 if count > 0 else size):
            raise BadMessage("the last run is cut short")
        out += taken * size if count > 0 else taken
        at += len(taken)
    return bytes(out)


def _signed_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        if at + index >= len(data):
            raise BadMessage("it ends within the length of a run")
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), at + index + 1
    raise BadMessage("the length of a run has more than five bytes")
