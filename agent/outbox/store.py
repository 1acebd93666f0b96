"""The operations on the outbox: items are added, taken, settled, listed and dropped.

One thread uses a store, inside a transaction that its caller begins and commits
(`agent.outbox.outbox`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from agent.config.profile import OutboxSettings
from agent.errors import AgentError
from agent.outbox.dedup import Deduplicator
from agent.outbox.format_before import FormatBefore
from agent.outbox.index import OutboxIndex
from agent.outbox.items import (
    Item,
    ItemEvent,
    ItemKind,
    Lane,
    ListedItem,
    NewItem,
    OutboxFull,
    OutboxTotals,
    Receipt,
    Selection,
    is_unnamed,
    outbox_error,
)
from agent.outbox.quota import Quota
from agent.outbox.records import Boot, ItemHead

SMALLEST_STEP_S = 30.0
"""A smaller step of the host's clock is drift, or a correction by the network."""
_EXPIRE_EVERY_S = 60.0
NOTHING_HELD: Mapping[Lane, Collection[int]] = {}


class Store:
    """The items of the outbox in `folder`. Raises OSError, UntrustedPlace."""

    def __init__(self, folder: Path, limits: OutboxSettings) -> None:
        self._folder = folder
        self._limits = limits
        self.index = OutboxIndex(folder)
        self._before = FormatBefore(folder)
        try:
            self._before.take_over(self.index)
        except OSError:  # the disk is full: it comes later
            self.index.reload()
        self._dedup = Deduplicator(self.index)
        self._quota = Quota(self.index, folder)
        self._expired_at = float("-inf")
        self._names: dict[str, str] = {}
        """What was `unnamed` -> the device that it is."""

    def anew(self) -> Store:
        """Return the items that are in the folder now, which was removed and made again."""
        store = Store(self._folder, self._limits)
        store._names = self._names
        return store

    def set_limits(self, limits: OutboxSettings) -> None:
        """Apply other limits from the next item on."""
        self._limits = limits

    def follow_clock(self, boot: str, offset_s: float) -> None:
        """Correct the times of items if the host's clock was set since they were added.

        `offset_s` is the time of the clock less the seconds since the `boot` of that name. Items of
        an earlier boot are left: its clock may have been right.
        """
        boots = self.index.known.boots
        number = next(reversed(boots), 0)
        if not number or boots[number].name != boot:
            number += 1
        elif abs(offset_s - boots[number].offset_s) <= SMALLEST_STEP_S:
            return
        self.index.set_boot(number, Boot(boot, offset_s))

    def name_device(self, unnamed: str, device: str) -> None:
        """Give to `device` what waits as `unnamed`, and what is still added as it.

        "" for `device`: it is not known, or not known any more, and what is added waits.
        """
        self._names.pop(unnamed, None)
        if device:
            self._names[unnamed] = device
            self.index.name_device(unnamed, device)
            self._dedup.name_device(unnamed, device)

    # Around a transaction

    def reload(self) -> None:
        """Forget what has changed since the last commit."""
        self.index.reload()
        self._dedup.reload()
        self._expired_at = float("-inf")

    def close(self) -> None:
        """Close the files; that of the format before goes if all of it is delivered."""
        self._before.remove_if_delivered(self.index)
        self.index.files.close()

    def disk_trouble(self) -> AgentError | None:
        """Return why the disk takes no items, None if it does."""
        try:
            self._quota.check(0, 0, self._limits)
        except OutboxFull as error:
            return error
        except OSError as error:
            return outbox_error(error, self._folder)
        return None

    # Adding items

    def add(self, items: Sequence[NewItem], now: float) -> Receipt:
        """Insert `items` in order. Raises OutboxFull when one of them cannot be accepted."""
        index, dedup, limits = self.index, self._dedup, self._limits
        if self._names:
            items = [
                replace(item, device=self._names.get(item.device, item.device)) for item in items
            ]
        self._expire(now)
        # Before dedup remembers anything: an item refused here is no duplicate at the next try.
        self._quota.make_room(items, limits, dedup.open_messages)
        ids: list[int] = []
        recalled: set[int] = set()
        added, boots = float(now), index.known.boots
        boot = next(reversed(boots), 0)
        since_boot = added - boots[boot].offset_s if boot else 0.0
        for item in items:
            kind, mark = item.kind, b""
            # Most of what comes is a chunk without a key: nothing is looked up for it.
            if item.key is not None or kind is ItemKind.COREDUMP:
                known = dedup.known_mark(item, now, limits.max_age_s)
                if known is None:
                    continue
                mark = known
            message = number = index.known.last_id + 1
            if kind is ItemKind.CHUNK:
                assigned = dedup.assign_message(item, number, now)
                if isinstance(assigned, list):
                    recalled.update(assigned)
                    index.move(assigned, ItemEvent.REPEATED)
                    continue
                message = assigned
            captured = added if item.captured_s is None else float(item.captured_s)
            meta = dict(item.meta)
            times = captured, added, boot, since_boot
            head = ItemHead(kind, item.device, message, *times, meta, mark)
            ids.append(index.insert(head, item.body))
        kept = tuple([id_ for id_ in ids if id_ not in recalled]) if recalled else tuple(ids)
        # Those that were recalled have been counted when they were moved.
        if duplicates := len(items) - len(ids):
            index.count("duplicates", duplicates)
        return Receipt(kept, len(items) - len(kept))

    def _expire(self, now: float) -> None:
        """Delete what is too old; at most once a minute."""
        if 0 <= now - self._expired_at < _EXPIRE_EVERY_S:
            return
        self._expired_at = now
        self._dedup.forget(now, self._limits.max_age_s)
        self._quota.expire(now, self._limits.max_age_s)

    # Taking and settling

    def lanes(self, held: Mapping[Lane, Collection[int]] = NOTHING_HELD) -> dict[Lane, bool]:
        """Return device and kind of all that waits for a service: whether it is more than `held`.

        `held` are messages by their numbers. What waits for the id of its device is left out.
        """
        parked, lanes = self.index.parked, {}
        for lane, entries in self.index.lanes.items():
            if is_unnamed(lane[0]):
                continue
            waits = (entry.head.message for id_, entry in entries.items() if id_ not in parked)
            for message in waits:
                lanes[lane] = message not in held.get(lane, ())
                if lanes[lane]:
                    break
        return lanes

    def take(self, device: str, kind: ItemKind, bounds: Selection) -> list[Item]:
        """Take the next waiting items of a lane, in order and at least one: they are in flight."""
        index, alone = self.index, bounds.alone
        batch: list[Item] = []
        size = taken = 0
        damaged: list[int] = []
        for number, entry in index.lanes.get((device, kind), {}).items():
            if number in index.in_flight or number in index.parked:
                continue
            message = entry.head.message
            if message in bounds.apart:
                if batch:
                    break
                continue
            if batch and message != batch[-1].message:
                if taken == bounds.messages or message in alone or batch[-1].message in alone:
                    break
                taken += 1
            if batch and (len(batch) >= bounds.items or size + entry.size > bounds.bytes):
                break
            body = index.read(entry)
            if body is None:
                damaged.append(number)
                continue
            size += len(body)
            taken = max(taken, 1)
            head = entry.head
            key = head.key or f"{index.files.name}-{number}"
            details = head.captured, head.meta, key, message
            batch.append(Item(number, kind, device, body, *details))
        if damaged:
            index.count("unreadable", len(damaged))
            index.move(damaged, ItemEvent.DAMAGED, "its bytes were damaged on the disk")
        index.move([item.id for item in batch], ItemEvent.TAKEN)
        return batch

    def next_batch(self, device: str, kind: ItemKind, selection: Selection) -> list[Item]:
        """Take what goes into the next request of a lane.

        If it is not known whether the last request arrived, also after a crash, these are the same
        items again and no more: the service recognises the request by its id.
        """
        items = self.take(device, kind, selection)
        first, last = self.index.known.in_doubt.get((device, kind), (1, 0))
        again = [item for item in items if first <= item.id <= last]
        if again:
            self.release([item.id for item in items if not first <= item.id <= last])
            items = again
        if items:
            self.index.mark_in_doubt((device, kind), (items[0].id, items[-1].id))
        return items

    def remove_delivered(self, ids: Sequence[int]) -> None:
        """Delete what the service has accepted."""
        in_doubt = self.index.known.in_doubt
        for lane in [lane for lane, (_, last) in in_doubt.items() if last in ids]:
            self.index.mark_in_doubt(lane, None)
        self.index.move(ids, ItemEvent.ACCEPTED)

    def release(self, ids: Iterable[int]) -> None:
        """Release items that are in flight: they wait again."""
        self.index.move(ids, ItemEvent.RELEASED)

    def release_all(self) -> None:
        """Release every item that is in flight."""
        self.release(list(self.index.in_flight))

    def count_refusal(self, ids: Sequence[int], reason: str, *, at_fault: bool) -> bool:
        """Count a refusal of items of one message; return whether it is parked now.

        It is parked as a whole, and only if it is `at_fault`: the service took others since.
        """
        index = self.index
        for number in ids:
            note = index.note_of(number)
            index.set_note(number, msgspec.structs.replace(note, refusals=note.refusals + 1))
        if at_fault and index.note_of(ids[0]).refusals >= self._limits.park_after:
            entry = index.entries[ids[0]]
            whole = index.message_ids(entry.lane, entry.head.message)
            index.move(whole, ItemEvent.GIVEN_UP, reason)
            return True
        index.move(ids, ItemEvent.REFUSED)
        return False

    # For people

    def list_items(self, limit: int = 1000) -> list[ListedItem]:
        """Return the oldest `limit` items, in order."""
        notes = self.index.note_of
        return [
            ListedItem(
                entry.id,
                entry.lane[1],
                entry.lane[0],
                entry.size,
                datetime.fromtimestamp(entry.head.captured, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                notes(entry.id).refusals,
                notes(entry.id).parked,
            )
            for entry in islice(
                self.index.entries.values(), limit if 0 <= limit < sys.maxsize else None
            )
        ]

    def totals(self) -> OutboxTotals:
        """Return how full the outbox is and what has become of its items."""
        index = self.index
        parked = len(index.parked)
        return OutboxTotals(
            len(index.entries) - parked, parked, index.size, index.known.counts.copy()
        )

    def waiting_of(self) -> dict[str, tuple[int, float]]:
        """Return for each device how many items wait, and when the oldest of them was taken."""
        found: dict[str, tuple[int, float]] = {}
        parked = self.index.parked
        for (device, _), entries in self.index.lanes.items():
            waits = [entry.head.captured for id_, entry in entries.items() if id_ not in parked]
            if waits:
                count, oldest = found.get(device, (0, math.inf))
                found[device] = count + len(waits), min(oldest, *waits)
        return found

    def drop(self, ids: Sequence[int]) -> int:
        """Delete items as a person asked, except those in flight; return how many."""
        free = self.index.allowing(ItemEvent.REMOVED, ids)
        self.index.move(free, ItemEvent.REMOVED)
        return len(free)

    def retry_parked(self) -> int:
        """Return all parked items to the waiting ones; return how many."""
        parked = sorted(self.index.parked)
        self.index.move(parked, ItemEvent.RETRIED)
        return len(parked)
