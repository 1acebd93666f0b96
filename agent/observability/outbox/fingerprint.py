"""Whole messages in a stream of chunks: where one begins, and what makes it recognisable. Pure."""

from __future__ import annotations

from typing import NamedTuple

from agent.observability.chunk_codec import decode_varint

WINDOW_S = 600.0
"""Seconds within which an export of the same message is the same message, and the same core dump
that a kit prints the same crash: unless the kit is known to have crashed or started in between."""

_HEAD = 32
_CONTINUATION = 0x80
_MORE = 0x40


class Place(NamedTuple):
    """Where a chunk stands. `fingerprint` is there once its message is whole and recognisable."""

    begins: bool
    ends: bool
    fingerprint: bytes | None = None


_ALONE = Place(begins=True, ends=True)


class MessageTracker:
    """Follows the chunks of one device. Chunks that break the format are each their own message."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._total = 0
        self._next = -1  # the offset that goes on; -1 when no message is open

    def take(self, chunk: bytes) -> Place:
        """Return where the next chunk of the device stands."""
        if not chunk:
            return _ALONE
        header = chunk[0]
        more = header & _MORE != 0
        if not header & _CONTINUATION and not more:
            self._next = -1
            length = len(chunk) - 3
            if length < 0:
                return _ALONE
            return Place(True, True, _fingerprint(chunk[-2:], length, chunk[1 : 1 + _HEAD]))
        try:
            number, start = decode_varint(chunk, 1)
        except ValueError:
            self._next = -1
            return _ALONE
        if not header & _CONTINUATION:
            self._head[:] = chunk[start : start + _HEAD]
            self._total, self._next = number, len(chunk) - start
            return Place(begins=True, ends=False)
        known = number == self._next
        if known and len(self._head) < _HEAD:
            self._head += chunk[start : start + min(_HEAD - len(self._head), self._total - number)]
        self._next = number + len(chunk) - start if more and known else -1
        crc_at = start + self._total - number
        if more or not known or crc_at + 2 > len(chunk):
            return Place(begins=False, ends=not more)
        fingerprint = _fingerprint(chunk[crc_at : crc_at + 2], self._total, bytes(self._head))
        return Place(begins=False, ends=True, fingerprint=fingerprint)


def _fingerprint(crc: bytes, length: int, head: bytes) -> bytes:
    # A short message is known by less: what lies behind it in the chunk is its CRC.
    return crc + length.to_bytes(5, "little") + head[: min(length, _HEAD)]
