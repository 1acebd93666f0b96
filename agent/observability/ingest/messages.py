"""The messages in chunks: their kind, an optional project key, run-length coding. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.observability.ingest.chunk_codec import decode_varint

KINDS = {0: "none", 1: "coredump", 2: "event", 3: "log", 4: "cdr", 5: "mar"}
"""The low six bits of the first byte -> the kind of the message."""
MAX_EXPANDED = 64 * 1024 * 1024
"""Bytes that a run-length coded payload may expand to: a few bytes can claim gigabytes."""

_KEY_FOLLOWS = 0x40
_RUN_LENGTH = 0x80
_KEY_SIZE = 32


@dataclass(frozen=True, slots=True)
class DeviceMessage:
    """A decoded message: `payload` is expanded; its project key overrides the sender's."""

    kind: str
    """A value of KINDS, or "unknown"."""
    payload: bytes
    project_key: str | None = field(default=None, repr=False)


def open_message(data: bytes) -> DeviceMessage:
    """Decode a message. Raises ValueError if it is truncated or its run lengths are wrong."""
    if not data:
        raise ValueError("an empty message has no type")
    header, payload, key = data[0], data[1:], None
    if header & _KEY_FOLLOWS:
        if len(payload) < _KEY_SIZE + 1 or payload[_KEY_SIZE]:
            raise ValueError("a project key of 32 characters and its NUL is announced, not there")
        key = payload[:_KEY_SIZE].decode("ascii", "backslashreplace")
        payload = payload[_KEY_SIZE + 1 :]
    if header & _RUN_LENGTH:
        payload = expand(payload)
    return DeviceMessage(KINDS.get(header & 0x3F, "unknown"), payload, key)


def kind_of(data: bytes) -> str:
    """Return the kind of a message without decoding it; "unknown" for an empty one."""
    return KINDS.get(data[0] & 0x3F, "unknown") if data else "unknown"


def expand(coded: bytes, limit: int = MAX_EXPANDED) -> bytes:
    """Undo run-length coding: zigzag varint n, then n > 0 times one byte or -n literal bytes.

    Raises ValueError when the runs do not add up or exceed `limit` bytes.
    """
    plain = bytearray()
    at = 0
    while at < len(coded):
        number, at = decode_varint(coded, at)
        count = number >> 1 ^ -(number & 1)
        if len(plain) + abs(count) > limit:
            raise ValueError(f"the run lengths exceed {limit} bytes")
        size = 1 if count > 0 else -count
        run = coded[at : at + size]
        if count == 0 or len(run) != size:
            raise ValueError(f"a run of {count} at byte {at} of {len(coded)} does not fit")
        plain += run * count if count > 0 else run
        at += size
    return bytes(plain)
