"""Forwards chunks and core dumps from a kit's console into the outbox.

A kit prints each of them once and then forgets it, so it is written to disk first of all.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump
from agent.console.zephyr_coredump import DumpHeader, reason_name
from agent.console.zephyr_registers import frame_registers, registers
from agent.errors import AgentError
from agent.observability.ingest.chunk_codec import is_continuation
from agent.observability.ingest.events import trace
from agent.observability.ingest.uploads import FileKind
from agent.outbox import ItemKind, NewItem, Outbox
from agent.outbox.items import TooLarge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from agent.config import Configuration
    from agent.console.line_classifier import ConsoleItem
    from agent.observability.ingest.device_identity import DeviceIdentity, IdentityTracker

    HandleItems = Callable[[Sequence[ConsoleItem]], Awaitable[None]]
    """Returns once what is to be kept of the items is on disk, or waits for room there."""

# The service's numbers for the reason of a trace.
STACK_OVERFLOW, MEMORY_FAULT, BUS_FAULT, USAGE_FAULT = 0x800B, 0x9200, 0x9100, 0x9300
KERNEL_PANIC, HARD_FAULT, SECURITY_VIOLATION = 0x8008, 0x9400, 0x9402

RETRY_S = 5.0
"""Seconds between two tries to store what could not be written to disk."""
_MAX_PENDING = 1000  # chunks, dumps and traces that wait in memory for free space on the disk


def _raise(error: AgentError | None) -> None:
    if error is not None:
        raise error


class StoreThenShow:
    """The way of what a kit printed: on disk first, in each of `stores`, then shown; in order.

    A kit prints once: what anybody saw is not lost, whenever this process is killed.
    """

    def __init__(self, stores: Sequence[HandleItems]) -> None:
        self._stores = stores
        self._turn = asyncio.Lock()

    async def handle(
        self, items: Sequence[ConsoleItem], show: Callable[[Sequence[ConsoleItem]], None]
    ) -> None:
        """Store items, then call `show` with them; raises what either raises.

        A caller that is cancelled does not wait for it; it is done all the same.
        """
        if self._stores or self._turn.locked():
            await asyncio.shield(self._handle(items, show))
        else:
            show(items)

    async def _handle(
        self, items: Sequence[ConsoleItem], show: Callable[[Sequence[ConsoleItem]], None]
    ) -> None:
        async with self._turn:
            for store in self._stores:
                await store(items)
            show(items)


@dataclass
class Forwarder:
    """Puts the chunks and dumps of one kit into the outbox, in the order they were printed.

    What cannot be written to disk waits in memory; the next items and `run` try it again.
    Calls `on_failure` with the reason, and with None once everything is stored. Without it the
    error is raised.
    """

    outbox: Outbox
    names: IdentityTracker
    wake: Callable[[], None] = lambda: None
    on_failure: Callable[[AgentError | None], None] = _raise
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self.lost = 0
        """Items that were lost: too many in memory, or larger than the whole quota."""
        self._sender = ""
        self._pending: list[NewItem] = []
        self._flushing = asyncio.Lock()
        self._stuck = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Items that wait in memory for free space on the disk."""
        return len(self._pending)

    @property
    def is_stuck(self) -> bool:
        """Whether the last write to the outbox failed."""
        return self._stuck.is_set()

    async def forward(self, items: Sequence[ConsoleItem], now: datetime) -> None:
        """Store the chunks and dumps of `items`; return once on disk, or waiting in memory.

        `now` (aware) is when they were printed. Raises AgentError without `on_failure`.
        """
        new: list[NewItem] = []
        for item in items:
            if isinstance(item, ChunkLine):
                self.names.observe(item.chunk)
                if not self._sender or not is_continuation(item.chunk):
                    # A message has one sender, also if a better name is learned in its middle.
                    self._sender = self.names.sender
                new.append(_chunk(item, self._sender, now))
            elif isinstance(item, CapturedDump):
                new += dump_items(item, self.names.identity(), self.names.sender, now)
        if new:
            self._pending += new
            await self.flush()

    async def run(self) -> None:
        """Retry what waits in memory every RETRY_S seconds, until cancelled."""
        while True:
            await self._stuck.wait()
            await self.wait(RETRY_S)
            await self.flush()

    async def flush(self) -> None:
        """Move the items that wait in memory into the outbox; a failure goes to `on_failure`."""
        # A cancelled caller must not leave this half done, or the items are stored twice.
        await asyncio.shield(self._flush())

    async def _flush(self) -> None:
        async with self._flushing:
            try:
                await self._store_pending()
            except AgentError as error:
                self._drop_oldest(max(0, len(self._pending) - _MAX_PENDING))
                self._stuck.set()
                self.on_failure(error)
                return
            if self._stuck.is_set():
                self._stuck.clear()
                self.on_failure(None)

    async def _store_pending(self) -> None:
        at_once = len(self._pending)
        while self._pending:
            first = self._pending[:at_once]
            try:
                await self.outbox.aput(first)
            except TooLarge as error:
                if len(first) > 1:
                    at_once = 1  # to find what is too large: the others pass
                    continue
                self._drop_oldest(1)
                self._stuck.set()
                self.on_failure(error)
            else:
                del self._pending[: len(first)]
                self.wake()

    def _drop_oldest(self, count: int) -> None:
        del self._pending[:count]
        self.lost += count


def _chunk(item: ChunkLine, sender: str, now: datetime) -> NewItem:
    return NewItem(ItemKind.CHUNK, sender, item.chunk, now.timestamp(), starts=item.starts)


def dump_items(
    captured: CapturedDump, device: DeviceIdentity, sender: str, now: datetime
) -> list[NewItem]:
    """Return the items of a Zephyr dump: the file, and a trace with its registers.

    Of a dump that is not whole the trace alone, as far as it can be read: of the crash nothing else
    is known, and the service takes few recordings of a device. `sender` is the device in the
    outbox, where its serial may not be known yet.
    """
    header = captured.dump.header
    if header is None:
        return []
    told = trace_item(captured, header, device, sender, now)
    if not captured.dump.usable:
        return [told]
    file = NewItem(
        ItemKind.COREDUMP,
        sender,
        bytes(captured.data),
        now.timestamp(),
        starts=captured.starts,
        meta={
            "form": FileKind.ZEPHYR_COREDUMP.name,
            "name": "zephyr-coredump.bin",
            "device": asdict(device),
            "reason": reason_name(header),
        },
    )
    return [file, told]


def trace_item(
    captured: CapturedDump, header: DumpHeader, device: DeviceIdentity, sender: str, now: datetime
) -> NewItem:
    """Return the trace of a Zephyr dump, by which the service counts the crash."""
    dump = captured.dump
    frame = frame_registers(registers(dump, captured.data))
    event = trace(
        device,
        trace_reason(header.reason),
        now,
        pc=frame.get("pc", 0),
        lr=frame.get("lr"),
        sp=frame.get("sp"),
        user_info={"zephyr_reason": header.reason}
        | ({} if dump.usable else {"coredump": dump.status.value, "detail": dump.detail}),
    )
    # A dump is a duplicate by its content; its trace is one with the dump.
    key = f"trace-of-{sha256(captured.data).hexdigest()}-{sender}"
    return NewItem(ItemKind.EVENT, sender, event, now.timestamp(), key, starts=captured.starts)


def outbox_folder(configuration: Configuration) -> Path:
    """Return the folder of the profile's outbox; each profile has a project and an outbox."""
    return configuration.state_dir / "outbox" / configuration.name


def trace_reason(reason: int) -> int:
    """Return the service's reason number for a fatal error reason of the Zephyr kernel."""
    if reason in {2, 17, 32}:
        return STACK_OVERFLOW
    if reason in {3, 4}:
        return KERNEL_PANIC
    for numbers, number in (
        (range(16, 22), MEMORY_FAULT),
        (range(22, 29), BUS_FAULT),
        (range(29, 37), USAGE_FAULT),
        (range(37, 45), SECURITY_VIOLATION),
    ):
        if reason in numbers:
            return number
    return HARD_FAULT
