"""The quota: bytes, items and age of the outbox, and free space on its disk.

The order of deletion; deleted items are counted as `expired` or `dropped`:
1. what is older than `max_age_s`;
2. parked items, the oldest first;
3. waiting items, the oldest first and whole messages at a time: never a chunk from the middle,
   never a message of which more chunks are to come, never what is being sent.
Below `min_free_bytes` of free disk nothing more is accepted (`refused`); stored items stay.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from agent.config.profile import OutboxSettings
from agent.outbox.item_state import ItemEvent
from agent.outbox.items import OutboxFull, TooLarge
from agent.outbox.tables import OutboxTables


def check_quota(limits: OutboxSettings, count: int, size: int, free: int, folder: str) -> None:
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
                hint=f"raise outbox.{key} in the profile, or give it less at a time",
            )
    if free - size < limits.min_free_bytes:
        raise OutboxFull(
            f"{free // 1024} KiB are free on the disk of {folder}: nothing more is "
            f"taken below {limits.min_free_bytes // 1024}",
            hint="free some space, or lower outbox.min_free_bytes in the profile",
        )


class Quota:
    """Makes room for new items. Only the thread that uses `tables` may call it."""

    def __init__(self, tables: OutboxTables, folder: Path) -> None:
        self._tables = tables
        self._folder = str(folder)
        self._free = 0

    def measure_free_space(self) -> None:
        """Read how many bytes of the disk are free: once a transaction."""
        try:
            self._free = shutil.disk_usage(self._folder).free
        except OSError:
            self._free = 0  # gone or not readable: nothing is accepted

    def make_room(
        self, count: int, size: int, limits: OutboxSettings, open_messages: Callable[[], set[int]]
    ) -> None:
        """Delete items until `count` items of `size` bytes fit. Raises TooLarge, OutboxFull."""
        tables = self._tables
        try:
            check_quota(limits, count, size, self._free, self._folder)
        except OutboxFull:
            tables.counts["refused"] += count
            raise
        while tables.size + size > limits.max_bytes or tables.total + count > limits.max_items:
            victims = self._oldest(open_messages())
            if not victims:
                tables.counts["refused"] += count
                raise OutboxFull("the outbox is full of what is being sent or still coming in")
            tables.move(victims, ItemEvent.REMOVED)

    def expire(self, now: float, max_age_s: float) -> None:
        """Delete the items that are older than `max_age_s`."""
        tables, limit = self._tables, now - max_age_s
        old = tables.db.execute("SELECT id FROM items WHERE added < ?", (limit,)).fetchall()
        tables.move(tables.allowing(ItemEvent.AGED, [row[0] for row in old]), ItemEvent.AGED)

    def _oldest(self, open_messages: set[int]) -> list[int]:
        """Return the ids that are deleted first when room is needed."""
        tables = self._tables
        row = tables.db.execute(
            "SELECT id FROM items WHERE state = 1 ORDER BY id LIMIT 1"
        ).fetchone()
        if row is not None:
            return [row[0]]
        passed_over = 0
        for (message,) in tables.db.execute(
            "SELECT message FROM items WHERE state = 0 ORDER BY id"
        ):
            if message not in open_messages and message != passed_over:
                ids = tables.message_ids(message)
                if tables.allowing(ItemEvent.REMOVED, ids) == ids:
                    return ids
            passed_over = message
        return []
