"""Deduplication: finds the message of each chunk, and items that were added before."""

from __future__ import annotations

from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from agent.observability.ingest.chunk_codec import decode_varint
from agent.outbox.index import OutboxIndex
from agent.outbox.items import ItemEvent, ItemKind, NewItem

WINDOW_S = 600.0
"""Seconds within which an equal message is a repeated export and an equal dump the same crash.

Not if the kit is known to have crashed or restarted in between."""

_SIZE = 16  # bytes of a digest: the chunks' own CRC of 16 bits is the same for many messages
_CONTINUATION = 0x80
_MORE = 0x40
_CRC_SIZE = 2


class ChunkPosition(NamedTuple):
    """Where a chunk stands in its message.

    `fingerprint` is a digest of the message; None until the message is complete and sound.
    """

    begins: bool
    ends: bool
    fingerprint: bytes | None = None


_ALONE = ChunkPosition(begins=True, ends=True)


class MessageTracker:
    """Follows the chunks of one device. Chunks that break the format are each their own message.

    A message has the same fingerprint however it was cut.
    """

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=_SIZE)
        self._total = 0
        self._next = -1  # the offset at which the message continues; -1 when none is open

    def feed(self, chunk: bytes) -> ChunkPosition:
        """Return the position of the next chunk of the device."""
        if not chunk:
            return _ALONE
        header = chunk[0]
        more = header & _MORE != 0
        if not header & _CONTINUATION and not more:
            self._next = -1
            if len(chunk) < 1 + _CRC_SIZE:
                return _ALONE
            return ChunkPosition(True, True, blake2b(chunk[1:], digest_size=_SIZE).digest())
        try:
            number, start = decode_varint(chunk, 1)
        except ValueError:
            self._next = -1
            return _ALONE
        data = memoryview(chunk)[start:]
        if not header & _CONTINUATION:
            self._digest = blake2b(data, digest_size=_SIZE)
            self._total, self._next = number, len(data)
            return ChunkPosition(begins=True, ends=False)
        known = number == self._next
        self._next = number + len(data) if more and known else -1
        rest = self._total - number + (0 if more else _CRC_SIZE)  # padding may stand behind it
        if known:
            self._digest.update(data[: max(rest, 0)])
        if more or not known or len(data) < rest:
            return ChunkPosition(begins=False, ends=not more)
        return ChunkPosition(begins=False, ends=True, fingerprint=self._digest.digest())


_MAX_STARTS = 10_000  # marks whose crashes and starts are remembered
_REPLAYED = 1000  # chunks: what a kit prints in seconds; an older message is taken as new


class _Incoming:
    """The messages of one device's chunks as they come in."""

    def __init__(self, device: str) -> None:
        self.device = device.encode()
        self.tracker = MessageTracker()
        self.message: int | None = None
        """The first id of the message that is open; None between messages."""


class Deduplicator:
    """Remembers recent items. Only the thread that uses `index` may call it.

    `max_age_s` is how long an item may wait; its key is remembered for as long.
    """

    def __init__(self, index: OutboxIndex) -> None:
        self._index = index
        self.reload()

    def reload(self) -> None:
        """Replay the newest chunks: which messages are open, and which are recent."""
        self._incoming: dict[str, _Incoming] = {}
        self._seen: dict[bytes, float] = {}
        # Crashes and starts of the kit are counted from here on: 0 for what came before.
        self._starts: dict[bytes, int] = {}
        entries = reversed(self._index.entries.values())
        chunks = (entry for entry in entries if entry.lane[1] == ItemKind.CHUNK)
        for entry in reversed(list(islice(chunks, _REPLAYED))):
            body = self._index.read(entry)
            mark = body and self._follow(entry.lane[0], body, entry.id)[1]
            if mark:
                self._seen[mark] = self._index.added_of(entry)

    def open_messages(self) -> set[int]:
        """Return the messages of which more chunks are to come."""
        return {each.message for each in self._incoming.values() if each.message is not None}

    def name_device(self, unnamed: str, device: str) -> None:
        """Know the messages of `unnamed` as those of `device`, also one that is still open."""
        before, after = unnamed.encode(), device.encode()
        if (incoming := self._incoming.pop(unnamed, None)) is not None:
            incoming.device = after
            self._incoming[device] = incoming
        for mark in [mark for mark in self._seen if mark.endswith(before)]:
            named = mark.removesuffix(before) + after
            self._seen[named] = self._seen.pop(mark)
            if mark in self._starts:
                self._starts[named] = self._starts.pop(mark)

    def forget(self, now: float, max_age_s: float) -> None:
        """Forget items that are too old to have duplicates."""
        limit = now - max_age_s
        self._seen = {mark: at for mark, at in self._seen.items() if abs(now - at) < WINDOW_S}
        if len(self._starts) > _MAX_STARTS:
            self._starts.clear()  # then an item may be stored twice
        for mark in [
            m for m, at in self._index.known.recent.items() if not limit <= at <= now + 86400.0
        ]:
            del self._index.known.recent[mark]

    def known_mark(self, item: NewItem, now: float, max_age_s: float) -> bytes | None:
        """Return the mark of an item with a key, or of a core dump; None for a duplicate.

        The mark of a new item is remembered.
        """
        if item.key is not None:
            what = b"key" + item.key.encode()
        else:
            import hashlib

            what = b"core" + hashlib.sha256(item.body).digest() + item.device.encode()
        mark = mark_of(what)
        added = self._index.known.recent.get(mark)
        if added is not None and self._is_same(mark, item, now - added, max_age_s):
            return None
        self._index.remember(mark, now)
        self._remember_start(mark, item)
        return mark

    def assign_message(self, item: NewItem, number: int, now: float) -> int | list[int]:
        """Return the message that a chunk belongs to, or the ids to delete as it is a duplicate.

        `number` will be the chunk's id.
        """
        message, mark = self._follow(item.device, item.body, number)
        if mark is not None:
            seen = self._seen.get(mark)
            if seen is not None and self._is_same(mark, item, now - seen, WINDOW_S):
                return self._recall(item.device, message, number)
            self._seen[mark] = now
            self._remember_start(mark, item)
        return message

    def _is_same(self, mark: bytes, item: NewItem, age_s: float, within_s: float) -> bool:
        """Return whether an item is the equal one of `age_s` ago, and not a new one of the kit."""
        if item.starts is not None:
            within_s = min(within_s, WINDOW_S)
            if self._starts.get(mark, 0) != item.starts:
                return False
        return abs(age_s) < within_s

    def _remember_start(self, mark: bytes, item: NewItem) -> None:
        if item.starts:
            self._starts[mark] = item.starts
        else:
            self._starts.pop(mark, None)

    def _follow(self, device: str, chunk: bytes, number: int) -> tuple[int, bytes | None]:
        """Return the message that a chunk belongs to, and its mark once it is complete."""
        incoming = self._incoming.get(device)
        if incoming is None:
            incoming = self._incoming[device] = _Incoming(device)
        position = incoming.tracker.feed(chunk)
        if position.begins or incoming.message is None:
            incoming.message = number
        message = incoming.message
        if position.ends:
            incoming.message = None
        if position.fingerprint is None:
            return message, None
        return message, position.fingerprint + incoming.device

    def _recall(self, device: str, message: int, last: int) -> int | list[int]:
        """Return the ids of a duplicate message; the message itself if part of it was sent."""
        ids = self._index.message_ids((device, ItemKind.CHUNK), message)
        complete = message == last or ids[:1] == [message]
        repeated = self._index.allowing(ItemEvent.REPEATED, ids) == ids
        return ids if complete and repeated else message


def mark_of(what: bytes) -> bytes:
    """Return the mark under which an item is remembered."""
    return blake2b(what, digest_size=_SIZE).digest()
