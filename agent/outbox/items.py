"""The items of the outbox, new and stored, their states, and its summaries and errors."""

import errno
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, StrEnum
from pathlib import Path

import msgspec

from agent.errors import AgentError, ResourceUnavailable, UsageError
from agent.files.private_files import disk_hint
from agent.json_value import JSONValue
from at.protocol.state_machine import Transitions

_Plain = str | int | float | bool | None
_read_meta = msgspec.json.Decoder(dict[str, _Plain | list[_Plain] | dict[str, _Plain]]).decode


class ItemKind(StrEnum):
    """The kind of an item; it decides which call delivers the item."""

    CHUNK = "chunk"
    EVENT = "event"
    COREDUMP = "coredump"


Lane = tuple[str, ItemKind]
"""Device and kind."""
_UNNAMED = "kit:"  # no id of a device has a colon


def unnamed(kit: str) -> str:
    """Return what stands for the device of a kit whose id is not known yet."""
    return f"{_UNNAMED}{kit}"


def is_unnamed(device: str) -> bool:
    """Return whether it is not known yet which device this is: its items wait for its id."""
    return device.startswith(_UNNAMED)


class ItemState(Enum):
    """The state of an item; the value of a final one is the name of its count in the totals."""

    WAITING = "waiting"
    IN_FLIGHT = "in flight"
    PARKED = "parked"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    DROPPED = "dropped"
    DUPLICATE = "duplicates"


class ItemEvent(Enum):
    """An event in the life of an item."""

    TAKEN = "taken into a request"
    ACCEPTED = "accepted by the service"
    RELEASED = "released: its request failed through no fault of its own"
    REFUSED = "refused"
    GIVEN_UP = "refused, or its message, once too often by a service that took others"
    DAMAGED = "found damaged on the disk"
    RETRIED = "retried by a person"
    AGED = "older than max_age_s"
    REMOVED = "removed by a person, or to make room"
    REPEATED = "its message turns out to be a repeated one"


TRANSITIONS = Transitions(
    {
        (ItemState.WAITING, ItemEvent.TAKEN): ItemState.IN_FLIGHT,
        (ItemState.WAITING, ItemEvent.DAMAGED): ItemState.PARKED,
        (ItemState.WAITING, ItemEvent.GIVEN_UP): ItemState.PARKED,
        (ItemState.WAITING, ItemEvent.AGED): ItemState.EXPIRED,
        (ItemState.WAITING, ItemEvent.REMOVED): ItemState.DROPPED,
        (ItemState.WAITING, ItemEvent.REPEATED): ItemState.DUPLICATE,
        (ItemState.IN_FLIGHT, ItemEvent.ACCEPTED): ItemState.DELIVERED,
        (ItemState.IN_FLIGHT, ItemEvent.RELEASED): ItemState.WAITING,
        (ItemState.IN_FLIGHT, ItemEvent.REFUSED): ItemState.WAITING,
        (ItemState.IN_FLIGHT, ItemEvent.GIVEN_UP): ItemState.PARKED,
        (ItemState.PARKED, ItemEvent.RETRIED): ItemState.WAITING,
        (ItemState.PARKED, ItemEvent.AGED): ItemState.EXPIRED,
        (ItemState.PARKED, ItemEvent.REMOVED): ItemState.DROPPED,
    }
)
"""An item of the outbox. What is in flight when the process ends waits again at the next start."""


class OutboxFull(AgentError):
    """Nothing more is accepted for now: the disk is nearly full, or the quota is used up."""

    kind = "outbox-full"


def outbox_error(error: OSError, folder: Path) -> AgentError:
    """Return what a caller is told when the outbox in `folder` cannot be written."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        is_limit = error.errno == errno.EFBIG  # of a disk with room
        why = "no file may grow so far" if is_limit else "the disk is full"
        return OutboxFull(f"{why}: the outbox took nothing", hint=disk_hint(error))
    # Not its file, which has a new name at each try: the same trouble would be another one.
    what, hint = error.strerror or error, disk_hint(error, folder)
    if error.errno == errno.ENOENT:
        hint = f"`mkdir -p -m 700 {shlex.quote(str(folder))}` puts back the folder that was removed"
    return AgentError(f"the outbox in {folder} cannot be written: {what}", hint=hint)


class TooLarge(OutboxFull):
    """The items of one call are larger than the whole quota: they will never fit."""


class OutboxHeld(ResourceUnavailable):
    """Another process has the outbox open; there is one connection to it at a time."""

    kind = "outbox-held"


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to deliver. `captured_s` is when it was captured, in unix seconds; None is now.

    Raises UsageError if `device` or `key` is no text in UTF-8, `captured_s` no time of a calendar,
    `meta` no JSON of at most 64 bits a number and one object or list in another.

    An item whose `key` is known is a duplicate and is not added again; so is a core dump
    of the same content, and a message of chunks that ended within the last ten minutes.
    """

    kind: ItemKind
    device: str
    body: bytes
    captured_s: float | None = None
    key: str | None = None
    meta: Mapping[str, JSONValue] = field(default_factory=dict)
    starts: int | None = None
    """Crashes and starts of the kit that this process saw before it; None if the item was not read
    from the kit itself. Equal items with different numbers are no duplicates; with the same number
    they are duplicates within ten minutes only."""

    def __post_init__(self) -> None:
        """Check what no outbox could keep, list or hand off."""
        what = "device"
        try:
            self.device.encode()
            what = "key"
            (self.key or "").encode()
            what = "captured_s"
            if self.captured_s is not None:
                datetime.fromtimestamp(self.captured_s, UTC)
            what = "meta"
            if self.meta:
                msgspec.msgpack.encode(self.meta)  # of a number, at most 64 bits
                if _read_meta(msgspec.json.encode(self.meta)) != self.meta:
                    raise TypeError("it would be read as another value")
        except (TypeError, ValueError, OverflowError, OSError, RecursionError) as error:
            raise UsageError(f"an item's {what} cannot be kept: {error}") from error


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of adding items: all of them are on disk, synced."""

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
    meta: Mapping[str, JSONValue]
    idempotency_key: str
    """The same at every try, also after a crash: the service can recognise a second delivery."""
    message: int
    """The id of the first chunk of its message; of what is no chunk, its own."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a lane's next request may hold: items that follow one another, of whole messages."""

    items: int
    bytes: int
    """Bounds of the request; one item is taken whatever its size."""
    messages: int = 1 << 30
    apart: frozenset[int] = frozenset()
    """Messages that are not sent now: the request ends before one."""
    alone: frozenset[int] = frozenset()
    """Messages that share a request with no other."""


class ListedItem(msgspec.Struct, frozen=True):
    """An item as lists show it: without its body."""

    id: int
    kind: ItemKind
    device: str
    bytes: int
    captured: str
    refusals: int
    parked: str | None
    """Why it is parked; None while it waits."""


COUNTS = (
    *("delivered", "duplicates", "expired", "dropped"),
    *("refused", "salvaged", "unreadable", "damaged_files"),
)


class OutboxTotals(msgspec.Struct, frozen=True):
    """How full the outbox is, and what has become of all items it ever accepted."""

    waiting: int
    parked: int
    bytes: int
    """Of all bodies."""
    counts: dict[str, int]
    """By the names in COUNTS; none where nothing came to it yet."""
