"""The quota: bytes, items and age of the outbox, and free space on its disk.

The order of deletion; deleted items are counted as `expired` or `dropped`:
1. what is older than `max_age_s`;
2. parked items, the oldest first;
3. waiting items, the oldest first and whole messages at a time: never a chunk from the middle,
   never a message of which more chunks are to come, never what is being sent.
Below `min_free_bytes` of free disk nothing more is accepted (`refused`); stored items stay.
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.config.profile import OutboxSettings
from agent.outbox.index import OutboxIndex
from agent.outbox.items import ItemEvent, NewItem, OutboxFull, TooLarge, outbox_error

_READ_AGAIN_S = 0.1
"""How long a reading of the free space holds; room for what is taken is on the disk before."""


def check_quota(limits: OutboxSettings, count: int, size: int, free: int, folder: Path) -> None:
    """Check `count` items of `size` bytes against the quota and the `free` bytes of the disk.

    Raises TooLarge, OutboxFull.
    """
    for amount, maximum, unit, key in (
        (size, limits.max_bytes, "bytes", "max_bytes"),
        (count, limits.max_items, "items", "max_items"),
    ):
        if amount > maximum:
            raise TooLarge(
                f"{amount} {unit} do not fit an outbox of {maximum}",
                hint=f"raise it: `cellagent config set outbox.{key} NUMBER`, "
                "or give it less at a time",
            )
    if free - size < limits.min_free_bytes or not free:
        raise OutboxFull(
            f"the disk is full: {free // 1024} KiB are free on the disk of {folder}, and nothing "
            f"more is taken below {limits.min_free_bytes // 1024} KiB",
            hint="free some space, or `cellagent config set outbox.min_free_bytes NUMBER`",
        )


class Quota:
    """Makes room for new items. Only the thread that uses `index` may call it."""

    def __init__(self, index: OutboxIndex, folder: Path) -> None:
        self._index = index
        self._folder = folder
        self._free = 0
        self._read_at = float("-inf")

    def check(self, count: int, size: int, limits: OutboxSettings) -> None:
        """Check that `count` items of `size` bytes may come. Raises TooLarge, OutboxFull.

        Raises OSError where the folder is gone or not readable: nothing is accepted then.
        """
        if (now := time.monotonic()) - self._read_at > _READ_AGAIN_S:
            self._free = shutil.disk_usage(self._folder).free
            self._read_at = now
        check_quota(limits, count, size, self._free, self._folder)

    def make_room(
        self,
        items: Sequence[NewItem],
        limits: OutboxSettings,
        open_messages: Callable[[], set[int]],
    ) -> None:
        """Delete items until `items` fit, and have room on the disk for them.

        Raises TooLarge, OutboxFull, AgentError: nothing was written then.
        """
        index, count = self._index, len(items)
        size = sum([len(item.body) for item in items])
        try:
            self.check(count, size, limits)
            index.reserve(size + 256 * count + sum([_size_of_head(item) for item in items]))
            while (
                index.size + size > limits.max_bytes
                or len(index.entries) + count > limits.max_items
            ):
                victims = self._oldest(open_messages())
                if not victims:
                    raise OutboxFull("the outbox is full of what is being sent or still coming in")
                index.move(victims, ItemEvent.REMOVED)
        except (OutboxFull, OSError) as error:
            counts = index.known.counts  # not noted: a refusal writes nothing
            counts["refused"] = counts.get("refused", 0) + 1
            if isinstance(error, OSError):
                raise outbox_error(error, self._folder) from None
            raise

    def expire(self, now: float, max_age_s: float) -> None:
        """Delete the items that are older than `max_age_s`."""
        index, limit = self._index, now - max_age_s
        old = [id_ for id_, entry in index.entries.items() if index.added_of(entry) < limit]
        index.move(index.allowing(ItemEvent.AGED, old), ItemEvent.AGED)

    def _oldest(self, open_messages: set[int]) -> list[int]:
        """Return the ids that are deleted first when room is needed."""
        index = self._index
        if index.parked:
            return [min(index.parked)]
        passed_over = 0
        for entry in index.entries.values():
            message = entry.head.message
            if message not in open_messages and message != passed_over:
                ids = index.message_ids(entry.lane, message)
                if index.allowing(ItemEvent.REMOVED, ids) == ids:
                    return ids
            passed_over = message
        return []


def _size_of_head(item: NewItem) -> int:
    return 4 * len(item.device) + (len(json.dumps(dict(item.meta))) if item.meta else 0)
