"""Keeping within the quota.

What goes first when room is needed, and is counted as `dropped` or `expired`:
1. what is older than `max_age_s`;
2. parked items, the oldest first;
3. waiting items, the oldest first and whole messages at a time: never a chunk from the middle,
   never the message that is still coming in, never what is being sent at the moment.
Below `min_free_bytes` of free disk nothing more is taken (`refused`), and what is there stays.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from agent.outbox.items import OutboxFull, TooLarge

if TYPE_CHECKING:
    from pathlib import Path

    from agent.config.profile import OutboxSettings as Limits
    from agent.outbox.dedup import Deduplicator
    from agent.outbox.tables import Tables

_PRUNE_EVERY_S = 60.0


def check_quota(limits: Limits, count: int, size: int, free: int, folder: str) -> None:
    """Check `count` items of `size` bytes against the quota and the `free` bytes of the disk.

    Raises TooLarge, OutboxFull.
    """
    for given, most, what, key in (
        (size, limits.max_bytes, "bytes", "max_bytes"),
        (count, limits.max_items, "items", "max_items"),
    ):
        if given > most:
            raise TooLarge(
                f"{given} {what} do not fit an outbox of {most}",
                hint=f"raise outbox.{key} in the profile, or give it less at a time",
            )
    if free - size < limits.min_free_bytes:
        raise OutboxFull(
            f"{free // 1024} KiB are free on the disk of {folder}: nothing more is "
            f"taken below {limits.min_free_bytes // 1024}",
            hint="free some space, or lower outbox.min_free_bytes in the profile",
        )


class Quota:
    """The room that is left for more. Used as `Tables` is, and by the same thread."""

    def __init__(
        self, tables: Tables, arrivals: Deduplicator, folder: Path, limits: Limits
    ) -> None:
        self._tables = tables
        self._arrivals = arrivals
        self._folder = str(folder)
        self.limits = limits
        self.load()

    def load(self) -> None:
        """Forget what is no longer true after a rollback."""
        self._pruned_at = float("-inf")
        self._free = 0

    def look(self) -> None:
        """Look how much of the disk is free: once a transaction."""
        try:
            self._free = shutil.disk_usage(self._folder).free
        except OSError:
            self._free = 0  # gone or not readable: nothing is taken

    def make(self, count: int, size: int) -> None:
        """Make room for `count` items of `size` bytes in all. Raises TooLarge, OutboxFull."""
        limits, tables = self.limits, self._tables
        try:
            check_quota(limits, count, size, self._free, self._folder)
        except OutboxFull:
            tables.counts["refused"] += count
            raise
        while tables.size + size > limits.max_bytes or tables.held + count > limits.max_items:
            victims = self._oldest()
            if not victims:
                tables.counts["refused"] += count
                raise OutboxFull("the outbox is full of what is being sent or still coming in")
            tables.counts["dropped"] += len(victims)
            tables.delete(victims)

    def prune(self, now: float) -> None:
        """Let go what is too old; looked at once a minute."""
        if 0 <= now - self._pruned_at < _PRUNE_EVERY_S:
            return
        self._pruned_at = now
        self._arrivals.forget(now)
        tables, limit = self._tables, now - self.limits.max_age_s
        old = [
            number
            for (number,) in tables.db.execute("SELECT id FROM items WHERE added < ?", (limit,))
            if number not in tables.taken
        ]
        tables.counts["expired"] += len(old)
        tables.delete(old)

    def _oldest(self) -> list[int]:
        """Return the ids that go first when room is needed."""
        tables = self._tables
        row = tables.db.execute(
            "SELECT id FROM items WHERE state = 1 ORDER BY id LIMIT 1"
        ).fetchone()
        if row is not None:
            return [row[0]]
        coming = self._arrivals.open_messages
        passed_over = 0
        for number, message in tables.db.execute(
            "SELECT id, message FROM items WHERE state = 0 ORDER BY id"
        ):
            if number in tables.taken or message in coming or message == passed_over:
                passed_over = message
                continue
            ids = tables.message(message)
            if not tables.taken.intersection(ids):
                return ids
            passed_over = message
        return []
