"""What a kit prints, wherever it prints it: chunks and core dumps go to the outbox."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from agent.console import reader
from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump
from agent.console.fault_lines import FaultText, Reboot
from agent.console.log_line import LogLine
from agent.console.port import ByteQueue, console_transport, own_port
from agent.console.reader import ConsoleCounts, ConsoleReader, LineClassifier
from agent.daemon.kit.link import KeptPort
from agent.daemon.status import State
from agent.errors import AgentError
from agent.outbox import OutboxFull
from agent.tasks import first_of, wait_for_event
from agent.wiring.forwarding import Forwarder, utc_now
from at.protocol.errors import LinkLost
from at.protocol.exchange import Restart, Unknown
from at.protocol.framing import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent.config.profile import KitSettings
    from agent.console.reader import ConsoleItem
    from agent.daemon.status import Concern
    from agent.observability.ingest.device_identity import IdentityTracker
    from agent.outbox import Outbox
    from agent.tasks import WaitForEvent
    from at.driver.stream import Stream
    from at.protocol.exchange import Item


MOST_WAITING = 1024 * 1024
"""Bytes that wait for one watcher: ten thousand lines. A single larger dump waits all the same."""
_AT_ONCE = 65536  # bytes that are handed over at once


class Watcher:
    """One window. It may stop reading: the oldest makes room for the newest, and is counted."""

    def __init__(self, counts: ConsoleCounts) -> None:
        """Tell what is heard from now on by `counts`, which goes on counting."""
        self._counts = counts
        self._before = replace(counts)
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._some = asyncio.Event()

    def put(self, lines: Sequence[bytes]) -> None:
        """Take lines of `agent.console.reader`; returns at once, whoever reads them or not."""
        for line in lines:
            self._waiting.append(line)
            self._size += len(line)
            while self._size > MOST_WAITING and len(self._waiting) > 1:
                self._size -= len(self._waiting.popleft())
                self._lost += 1
        self._some.set()

    async def next(self) -> tuple[bytes, int]:
        """Wait for lines; return some of them, and how many were lost before them."""
        await self._some.wait()
        data = bytearray()
        while self._waiting and len(data) < _AT_ONCE:
            data += self._waiting.popleft()
        self._size -= len(data)
        lost, self._lost = self._lost, 0
        if not self._waiting:
            self._some.clear()
        return bytes(data), lost

    def counted(self) -> dict[str, int]:
        """Return what was heard since this window was opened, by name."""
        before = asdict(self._before)
        return {name: value - before[name] for name, value in asdict(self._counts).items()}


class Watchers:
    """All windows on one console."""

    def __init__(self, counts: ConsoleCounts) -> None:
        self._counts = counts
        self._watchers: list[Watcher] = []
        self._dump_comes = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Be shown what is heard while the block runs."""
        watcher = Watcher(self._counts)
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)

    def show(self, items: Sequence[ConsoleItem]) -> None:
        """Show what was heard to all; waits for nobody."""
        if self._watchers and items:
            self._put([reader.encode(item) for item in items])

    def show_coming(self, dump_bytes: int) -> None:
        """Show that a core dump began, of which so much was heard, or that none is printed."""
        if bool(dump_bytes) != self._dump_comes:
            self._dump_comes = bool(dump_bytes)
            self._put([b'{"coming":%d}\n' % dump_bytes])

    def _put(self, lines: Sequence[bytes]) -> None:
        for watcher in self._watchers:
            watcher.put(lines)


class KitConsole:
    """The console of one kit."""

    def __init__(
        self,
        concern: Concern,
        outbox: Outbox,
        names: IdentityTracker,
        wake: Callable[[], None],
        *,
        restarted: Callable[[str], None] = lambda _line: None,
        wait: WaitForEvent = wait_for_event,
    ) -> None:
        """`names` tells who the kit is, as far as that is known; `wake` starts the delivery.

        `restarted` hears the lines of a restart on the console's own port.
        """
        self.concern = concern
        self.kept = KeptPort(concern)
        """The console's own port."""
        self.write: Callable[[bytes], None] | None = None
        """Writes to the console's own port while that is open; None where there is none."""
        self._counts = ConsoleCounts()
        self.watchers = Watchers(self._counts)
        self._forwarder = Forwarder(
            outbox,
            names,
            wake=wake,
            on_failure=self._told,
            wait=lambda seconds: wait(asyncio.Event(), seconds),
        )
        self._restarted = restarted

    # --- the AT port

    async def hear(
        self, lines: Stream[Item], at_port: KeptPort, lent: Callable[[], bool] = lambda: False
    ) -> None:
        """Take the console lines of the AT port until the link is lost; raises LinkLost.

        What the modem says while it is `lent` is kept all the same, but is shown to nobody else.
        """
        classifier = LineClassifier(self._counts)
        try:
            async for first in lines:
                items = _read(classifier, [first, *_at_hand(lines)])
                self._coming(classifier.dump_bytes, at_port)
                await self.take(items, plain=not lent())
        finally:
            # What was heard before the end is kept, too: the kit does not say it again.
            rest = _read(classifier, _at_hand(lines))
            await self.take([*rest, *classifier.finish()])

    # --- a port of its own

    @property
    def port(self) -> str:
        """The console's own port; "" where the kit prints on its AT port."""
        return self.kept.name or ""

    async def run(self, kit: KitSettings) -> None:
        """Read the console's own port, if there is one: the work of the concern."""
        await first_of(self._forwarder.run(), self._ports(kit))

    async def _ports(self, kit: KitSettings) -> None:
        async with self.kept.opened():  # to find it, all are listened to
            port = self.kept.name = await own_port(kit)
        self.concern.learn(port=port or "the AT port")
        if not port:
            if not self._forwarder.is_stuck:
                self.concern.well()
            await asyncio.Event().wait()  # what comes, comes by `hear`
        while True:
            async with self.kept.opened():
                await first_of(self._read(port, kit.baud), self.kept.wanted())

    async def _read(self, port: str, baud: int) -> None:
        reader, receiver = ConsoleReader(counts=self._counts), ByteQueue()
        transport = console_transport(port, baud)
        await transport.open(receiver)
        try:
            self.concern.well()
            self.write = transport.write
            while (data := await receiver.next()) is not None:
                items = reader.receive(data)
                self._coming(reader.dump_bytes, self.kept)
                await self._take_own(items)
        finally:
            self.write = None
            await transport.close()
            await self.take(reader.finish())
        raise LinkLost(f"{port} went away")

    async def overhear(self, data: bytes) -> None:
        """Take what the kit printed, between other things, on a port that was let go."""
        if self.concern.state is State.OFF:
            return
        reader = ConsoleReader(counts=self._counts)
        await self._take_own([*reader.receive(data), *reader.finish()])

    async def _take_own(self, items: Sequence[ConsoleItem]) -> None:
        for item in items:
            if isinstance(item, Reboot):
                self._restarted(item.line)
        await self.take(items)

    # --- both

    def _coming(self, dump_bytes: int, port: KeptPort) -> None:
        port.dump_comes(dump_bytes)
        self.watchers.show_coming(dump_bytes)

    async def take(self, items: Sequence[ConsoleItem], *, plain: bool = True) -> None:
        """Keep what is to be delivered; return once it is on disk, or waits for room there.

        Who watches is shown lines that are no log lines only if `plain`: they may be answers.
        """
        shown = [item for item in items if plain or not _is_plain(item)]
        self._counts.lines -= len(items) - len(shown)
        self.watchers.show(shown)
        for item in items:
            self._count(item)
        await self._forwarder.forward(items, utc_now())

    def _told(self, error: AgentError | None) -> None:
        if lost := self._forwarder.lost:
            self.concern.learn(lost=lost)
        if error is None:
            self.concern.well()
            return
        full = isinstance(error, OutboxFull)
        self.concern.failed(error if full else AgentError(f"not kept: {error}", hint=error.hint))

    def _count(self, item: ConsoleItem) -> None:
        name = _COUNTED.get(type(item))
        if name is None or _goes_on(item):
            return
        count = int(self.concern.facts.get(name, 0)) + 1
        self.concern.learn(**{name: count})
        if isinstance(item, CapturedDump):
            self.concern.tell(
                logging.WARNING, f"the kit crashed: a core dump, {item.dump.status.value}"
            )
        elif isinstance(item, FaultText):
            self.concern.tell(logging.INFO, f"the kit reports a fault: {item.what}")


def _at_hand(lines: Stream[Item]) -> list[Item]:
    items = []
    while lines.queue:
        items.append(lines.queue.get())
    return items


def _read(classifier: LineClassifier, items: Sequence[Item]) -> list[ConsoleItem]:
    heard: list[ConsoleItem] = []
    for item in items:
        if isinstance(item, Restart) and item.is_banner:
            continue  # it came as a log line
        if isinstance(item, Log | Unknown | Restart):
            heard += classifier.classify(item.text.encode())
    return heard


def _goes_on(item: ConsoleItem) -> bool:
    """Tell whether a line belongs to a crash, or to a start, that has another line to count."""
    if isinstance(item, FaultText):
        return not item.first
    return isinstance(item, Reboot) and item.is_bootloader


def _is_plain(item: ConsoleItem) -> bool:
    return isinstance(item, LogLine) and item.level is None


_COUNTED = {ChunkLine: "chunks", CapturedDump: "dumps", FaultText: "faults", Reboot: "reboots"}
