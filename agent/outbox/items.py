"""What the outbox holds, and what it says about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from agent.errors import AgentError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping


class ItemKind(StrEnum):
    """What an item is; it decides the call that delivers it."""

    CHUNK = "chunk"
    EVENT = "event"
    COREDUMP = "coredump"


class OutboxFull(AgentError):
    """Nothing more is taken for now: the disk is nearly full, or the quota is taken."""

    kind = "outbox-full"


class TooLarge(OutboxFull):
    """What was given at once will never fit: it is larger than the whole quota."""


class OutboxHeld(Unavailable):
    """Another process has the outbox open; there is one connection to it at a time."""

    kind = "outbox-held"


@dataclass(frozen=True, slots=True)
class NewItem:
    """Something to deliver. `captured_s` is when it happened, in unix seconds; None is now.

    An item whose `key` was taken before is a duplicate and is not taken again; so is a core dump
    of the same content, and a message of chunks that ended within the last ten minutes.
    """

    kind: ItemKind
    device: str
    body: bytes
    captured_s: float | None = None
    key: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    starts: int | None = None
    """Crashes and starts of the kit that this process heard before it; None where it is not read
    from the kit itself. With another number it is another item, whatever it equals; with the same
    it is the same for ten minutes only."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the items of one call: all of it is on disk, synced."""

    ids: tuple[int, ...]
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """An item that waits or is parked."""

    id: int
    kind: ItemKind
    device: str
    body: bytes
    captured_s: float
    refusals: int
    meta: Mapping[str, Any]
    idempotency_key: str
    """The same at every try, after a crash too: so that the service can tell a second delivery."""


@dataclass(frozen=True, slots=True)
class ItemSummary:
    """An item as `outbox list` shows it: without its body."""

    id: int
    kind: ItemKind
    device: str
    size: int
    captured_s: float
    refusals: int
    parked: str
    """Why it is parked; "" while it waits."""


@dataclass(frozen=True, slots=True)
class OutboxTotals:
    """How full the outbox is, and what has become of everything it ever took."""

    waiting: int
    parked: int
    size: int
    """Bytes of all bodies."""
    counts: Mapping[str, int]
    """delivered, duplicates, expired, dropped, refused, salvaged, unreadable, damaged_files."""
