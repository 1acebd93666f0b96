"""An outbox on a clock that the test moves, and chunks to put into it."""

import os
from pathlib import Path

from agent.config.profile import OutboxSettings
from agent.observability.ingest.chunk_codec import encode
from agent.outbox import ItemKind, NewItem, Outbox, OutboxFull, Receipt
from agent.outbox.items import Item, OutboxTotals, Selection
from agent.outbox.store import Store

LIMITS = OutboxSettings(min_free_bytes=0)


class Clock:
    """Seconds that only the test moves."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class OutboxOnFullDisk(Outbox):
    """An outbox on a disk that is full while `full` is set."""

    full = False

    async def aput(self, items: list[NewItem]) -> Receipt:
        if self.full:
            raise OutboxFull("the disk is full", hint="free some space")
        return await super().aput(items)


def outbox(
    folder: Path,
    limits: OutboxSettings = LIMITS,
    clock: Clock | None = None,
    since_boot: Clock | None = None,
    boot: str = "a boot",
) -> Outbox:
    """Open an outbox; without `since_boot` its clock is never set, and only time passes."""
    clock = clock or Clock()
    return Outbox(folder / "state", limits, clock=clock, since_boot=since_boot or clock, boot=boot)


def chunk(number: int, device: str = "kit") -> NewItem:
    """Return a message of its own in one chunk."""
    (data,) = encode(b"\x02" + number.to_bytes(8, "little") + device.encode(), 100)
    return NewItem(ItemKind.CHUNK, device, data)


def chunks(message: bytes, mtu: int = 20, device: str = "kit") -> list[NewItem]:
    return [NewItem(ItemKind.CHUNK, device, data) for data in encode(message, mtu)]


def event(number: int, device: str = "kit") -> NewItem:
    return NewItem(ItemKind.EVENT, device, b'{"n":%d}' % number)


def waiting(box: Outbox, kind: ItemKind = ItemKind.CHUNK, device: str = "kit") -> list[Item]:
    """Return what waits of a device and kind, the oldest first; it goes on waiting."""
    items = box.transact(lambda store: store.take(device, kind, Selection(10**6, 1 << 40)))
    box.transact(lambda store: store.release([item.id for item in items]))
    return items


def refused(
    box: Outbox, reason: str, kind: ItemKind = ItemKind.CHUNK, *, at_fault: bool = True
) -> bool:
    """Let the service refuse the oldest message of a kit; return whether it is parked now.

    Where it is `at_fault`, the service took another since it first refused this one.
    """

    def refuse(store: Store) -> bool:
        (item,) = store.take("kit", kind, Selection(1, 1 << 40))
        return store.count_refusal([item.id], reason, at_fault=at_fault)

    return box.transact(refuse)


def spoil(store: Store, id_: int) -> None:
    """Change the last byte of an item's body on the disk."""
    entry = store.index.entries[id_]
    with entry.segment.path.open("r+b") as file:
        file.seek(entry.offset + entry.length - 1)
        (last,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([last ^ 1]))


def bodies(box: Outbox, kind: ItemKind = ItemKind.CHUNK, device: str = "kit") -> list[bytes]:
    """Return the bodies of what waits, the oldest first."""
    return [item.body for item in waiting(box, kind, device)]


def totals(box: Outbox) -> OutboxTotals:
    """Return what the outbox holds, counted."""
    return box.transact(lambda store: store.totals())
