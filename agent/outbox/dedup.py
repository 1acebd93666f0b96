"""Deduplication: finds the message of each chunk, and items that were added before."""

from hashlib import blake2b, sha256
from itertools import islice

from agent.observability.ingest.chunk_codec import CONTINUATION, CRC_SIZE, MORE, decode_varint
from agent.outbox.index import OutboxIndex
from agent.outbox.items import ItemEvent, ItemKind, NewItem

WINDOW_S = 600.0
"""Seconds within which an equal message is a repeated export and an equal dump the same crash.

Not if the kit is known to have crashed or restarted in between."""

_SIZE = 16  # bytes of a digest: the chunks' own CRC of 16 bits is the same for many messages


class MessageTracker:
    """Follows the chunks of one device. Chunks that break the format are each their own message.

    A message has the same digest however it was cut.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.message: int | None = None
        """The number of the first chunk of the message that is open; None between messages."""
        self._digest = blake2b(digest_size=_SIZE)
        self._total = 0
        self._next = -1  # the offset at which the message continues; -1 when none is open

    def feed(self, chunk: bytes, number: int) -> tuple[int, bytes | None]:
        """Return the message of the next chunk of the device, of this number, and its mark.

        The mark is None until the message is complete and sound.
        """
        begins, ends, digest = self._place(chunk)
        if begins or self.message is None:
            self.message = number
        message = self.message
        if ends:
            self.message = None
        return message, digest and digest + self.device.encode()

    def _place(self, chunk: bytes) -> tuple[bool, bool, bytes | None]:
        """Return whether a message begins and ends here, and its digest once it is whole."""
        header = chunk[0] if chunk else 0
        more = header & MORE != 0
        if not header & CONTINUATION and not more:
            self._next = -1
            whole = len(chunk) > CRC_SIZE
            return True, True, blake2b(chunk[1:], digest_size=_SIZE).digest() if whole else None
        try:
            number, start = decode_varint(chunk, 1)
        except ValueError:
            self._next = -1
            return True, True, None
        data = memoryview(chunk)[start:]
        if not header & CONTINUATION:
            self._digest = blake2b(data, digest_size=_SIZE)
            self._total, self._next = number, len(data)
            return True, False, None
        known = number == self._next
        self._next = number + len(data) if more and known else -1
        rest = self._total - number + CRC_SIZE  # padding may stand behind it
        if known:
            self._digest.update(data[: max(rest, 0)])
        whole = known and not more and len(data) >= rest
        return False, not more, self._digest.digest() if whole else None


_MAX_STARTS = 10_000  # marks whose crashes and starts are remembered
_REPLAYED = 1000  # chunks: what a kit prints in seconds; an older message is taken as new


class Deduplicator:
    """Remembers recent items. Only the thread that uses `index` may call it."""

    def __init__(self, index: OutboxIndex) -> None:
        self._index = index
        self.reload()

    def reload(self) -> None:
        """Replay the newest chunks: which messages are open, and which are recent."""
        self._incoming: dict[str, MessageTracker] = {}
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
            incoming.device = device
            self._incoming[device] = incoming
        for mark in [mark for mark in self._seen if mark[_SIZE:] == before]:
            named = mark[:_SIZE] + after
            self._seen[named] = self._seen.pop(mark)
            if mark in self._starts:
                self._starts[named] = self._starts.pop(mark)

    def forget(self, now: float, max_age_s: float) -> None:
        """Forget items that are too old to have duplicates."""
        self._seen = {mark: at for mark, at in self._seen.items() if abs(now - at) < WINDOW_S}
        if len(self._starts) > _MAX_STARTS:
            self._starts.clear()  # then an item may be stored twice
        recent = self._index.known.recent
        for mark in [mark for mark, at in recent.items() if abs(now - at) > max_age_s]:
            del recent[mark]

    def known_mark(self, item: NewItem, now: float, max_age_s: float) -> bytes | None:
        """Return the mark of an item with a key, or of a core dump; None for a duplicate.

        The mark of a new item is remembered. `max_age_s` is how long an item may wait: its key is
        remembered for as long.
        """
        if item.key is not None:
            what = b"key" + item.key.encode()
        else:
            what = b"core" + sha256(item.body).digest() + item.device.encode()
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
        if device not in self._incoming:
            self._incoming[device] = MessageTracker(device)
        return self._incoming[device].feed(chunk, number)

    def _recall(self, device: str, message: int, last: int) -> int | list[int]:
        """Return the ids of a duplicate message; the message itself if part of it was sent."""
        ids = self._index.message_ids((device, ItemKind.CHUNK), message)
        complete = message == last or ids[:1] == [message]
        repeated = self._index.allowing(ItemEvent.REPEATED, ids) == ids
        return ids if complete and repeated else message


def mark_of(what: bytes) -> bytes:
    """Return the mark under which an item is remembered."""
    return blake2b(what, digest_size=_SIZE).digest()
