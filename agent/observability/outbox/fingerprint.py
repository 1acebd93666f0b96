"""Whole messages in a stream of chunks: where one begins, and what makes it recognisable. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from agent.observability.chunk_codec import decode_varint

WINDOW_S = 600.0
"""Seconds within which an export of the same message is the same message, and the same core dump
that a kit prints the same crash: unless the kit is known to have crashed or started in between."""

_SIZE = 16  # bytes of a digest: the chunks' own CRC of 16 bits is the same for many messages
_CONTINUATION = 0x80
_MORE = 0x40
_CRC_SIZE = 2


class Place(NamedTuple):
    """Where a chunk stands. `fingerprint` is there once its message is whole and recognisable."""

    begins: bool
    ends: bool
    fingerprint: bytes | None = None


_ALONE = Place(begins=True, ends=True)


class MessageTracker:
    """Follows the chunks of one device. Chunks that break the format are each their own message.

    A message has the same fingerprint however it was cut.
    """

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=_SIZE)
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
            if len(chunk) < 1 + _CRC_SIZE:
                return _ALONE
            data = memoryview(chunk)[1:]
            return Place(True, True, blake2b(data, digest_size=_SIZE).digest())
        try:
            number, start = decode_varint(chunk, 1)
        except ValueError:
            self._next = -1
            return _ALONE
        data = memoryview(chunk)[start:]
        if not header & _CONTINUATION:
            self._digest = blake2b(data, digest_size=_SIZE)
            self._total, self._next = number, len(data)
            return Place(begins=True, ends=False)
        known = number == self._next
        self._next = number + len(data) if more and known else -1
        rest = self._total - number + (0 if more else _CRC_SIZE)  # padding may stand behind it
        if known:
            self._digest.update(data[: max(rest, 0)])
        if more or not known or len(data) < rest:
            return Place(begins=False, ends=not more)
        return Place(begins=False, ends=True, fingerprint=self._digest.digest())
