"""A kit's console, on its AT port or on a port of its own: stored in the outbox, and watched.

Chunks and core dumps go to the outbox; every item goes to the windows that watch.
"""

import asyncio
import logging
import shlex
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from agent.config.profile import KitSettings
from agent.console.chunk_lines import ChunkLine, DamagedChunk
from agent.console.dump_lines import CapturedDump
from agent.console.fault_lines import FaultText, Reboot
from agent.console.line_classifier import ConsoleCounts, ConsoleItem, ConsoleReader, LineClassifier
from agent.console.log_line import LogLine
from agent.console.port import ByteQueue, console_transport, own_port
from agent.console.zephyr_registers import frame_registers, registers
from agent.daemon.kit.console_windows import ConsoleWatchers
from agent.daemon.kit.held_port import HeldPort
from agent.daemon.snapshot import ConsoleStatus, Crash, Phase
from agent.daemon.status import Concern
from agent.errors import AgentError, with_hint
from agent.observability.ingest.device_identity import IdentityTracker
from agent.outbox import Outbox, OutboxFull
from agent.tasks import first_of
from agent.wiring.forwarding import Forwarder, StoreThenShow
from at.driver.stream import Stream
from at.protocol.counts import counted
from at.protocol.errors import LinkLost
from at.protocol.line.framing import Log
from at.protocol.line.items import Item, Restart, Unknown

_REPORT_AND_DUMP = timedelta(minutes=2)  # from a crash's report to the end of its dump, at most
_COUNTED = ("chunks", "dumps", "faults", "reboots", "damaged")


class KitConsole:
    """The console of one kit."""

    def __init__(
        self,
        concern: Concern[ConsoleStatus],
        outbox: Outbox,
        names: IdentityTracker,
        wake: Callable[[], None],
        *,
        store_events: Callable[[], Awaitable[None]],
        keep_dump: Callable[[bytearray], Path],
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`names` is the identity of the kit as far as it is known; `wake` starts the delivery.

        `store_events` returns once the events of restarts, on any port, are on disk; `keep_dump`
        stores a core dump that is not whole, which is not delivered, and returns its file.
        """
        self.concern = concern
        self.held_port = HeldPort(concern)
        """The console's own port."""
        self.write: Callable[[bytes], None] | None = None
        """Writes to the console's own port while that is open; None where there is none."""
        self.on_open: Callable[[], None] = lambda: None
        """Called before the console's own port is opened to be read."""
        self.on_restart: Callable[[str], None] = lambda _line: None
        """Called with each line on the console's own port that announces a restart."""
        self._counts = ConsoleCounts()
        self.watchers = ConsoleWatchers(self._counts)
        self._forwarder = Forwarder(outbox, names, wake=wake, on_failure=self._on_stored, wait=wait)
        self._store_events = store_events
        self._keep_dump = keep_dump
        self._way = StoreThenShow([self._store])
        self._fault_is_taken = True
        self._of_before: ConsoleStatus | None = None

    def take_fault(self) -> str:
        """Return what the kit reported of a crash, with its time; "" where that was taken before.

        It is all that there is of a crash whose dump is not printed.
        """
        crash = self.concern.status.crash
        if crash is None or self._fault_is_taken:
            return ""
        self._fault_is_taken = True
        frame = f" at {crash.frame}" if crash.frame else ""
        thread = f" in thread {crash.thread}" if crash.thread else ""
        return f"{crash.what}{frame}{thread} ({crash.at:%H:%M:%SZ})"

    def doubt(self) -> None:
        """Note what is known of the kit: what it prints from now on may be another kit's."""
        self._of_before = msgspec.structs.replace(self.concern.status)

    def forget(self) -> None:
        """Forget the crash and the counts of before the last doubt: they were another kit's."""
        before = self._of_before or msgspec.structs.replace(self.concern.status)
        with self.concern.changing() as status:
            for name in _COUNTED:
                setattr(status, name, getattr(status, name) - getattr(before, name))
            if status.crash == before.crash:
                status.crash, self._fault_is_taken = None, True

    # --- the AT port

    async def read_at_port(
        self, lines: Stream[Item], at_port: HeldPort, is_leased: Callable[[], bool] = lambda: False
    ) -> None:
        """Handle the console lines of the AT port until the link is lost. Raises LinkLost.

        During a lease items are stored all the same, but watchers get no plain lines: they may
        be answers to the holder of the lease.
        """
        classifier = LineClassifier(self._counts)
        try:
            async for first in lines:
                items = _classify(classifier, [first, *lines.take()])
                self._dump_progress(classifier.dump_bytes, at_port)
                await self.handle(items, publish_plain=not is_leased())
        finally:
            # What was received before the end is stored, too: the kit does not print it again.
            rest = _classify(classifier, lines.take())
            await self.handle([*rest, *classifier.finish()])

    async def read_rest(self, rest: Sequence[Item]) -> None:
        """Handle the console lines that are left of an AT port that is closed."""
        classifier = LineClassifier(self._counts)
        await self.handle([*_classify(classifier, rest), *classifier.finish()])

    # --- a port of its own

    @property
    def port(self) -> str:
        """The console's own port; "" where the kit prints on its AT port."""
        return self.held_port.name or ""

    async def run(self, kit: KitSettings) -> None:
        """Read the console's own port, if there is one: the work of the concern."""
        await first_of(self._forwarder.run(), self._read_own_port(kit))

    async def _read_own_port(self, kit: KitSettings) -> None:
        async with self.held_port.opened():  # all ports are opened to find it
            found = await own_port(kit)
            port = self.held_port.name = found.port
        with self.concern.changing() as status:
            status.port = port or "the AT port"
        if not port:
            if not self._forwarder.is_stuck:
                self.concern.set_well()
            await asyncio.Event().wait()  # items come by `read_at_port`
        reader = ConsoleReader(counts=self._counts)
        if found.data:
            self.on_open()
            await self.handle(reader.receive(found.data), is_own=True)
        while True:
            async with self.held_port.opened():
                reading = self._read(port, kit.baud, reader)
                await first_of(reading, self.held_port.release_requested())
            reader = ConsoleReader(counts=self._counts)

    async def _read(self, port: str, baud: int, reader: ConsoleReader) -> None:
        receiver = ByteQueue()
        transport = console_transport(port, baud)
        self.on_open()
        await transport.open(receiver)
        try:
            self.concern.set_well()
            self.write = transport.write
            while (data := await receiver.next()) is not None:
                items = reader.receive(data)
                self._dump_progress(reader.dump_bytes, self.held_port)
                await self.handle(items, is_own=True)
        finally:
            self.write = None
            try:
                await transport.close()
            finally:
                # What was received before the end is stored, too: the kit does not print it again.
                rest = reader.receive(receiver.take())
                await self.handle([*rest, *reader.finish()], is_own=True)
        raise LinkLost(f"{port} went away")

    async def receive_from_installer(self, data: bytes) -> None:
        """Handle what the kit printed, between other things, on a port that was released."""
        if self.concern.phase is Phase.OFF:
            return
        reader = ConsoleReader(counts=self._counts)
        await self.handle([*reader.receive(data), *reader.finish()], is_own=True)

    async def close(self) -> None:
        """Store what still waits in memory; log what is lost for want of room on the disk."""
        if not self._forwarder.is_stuck:
            return
        await self._forwarder.flush()
        if lost := self._forwarder.waiting:
            text = f"{counted(lost, 'chunks and dumps')} in memory alone: lost with the agent's end"
            self.concern.log(logging.ERROR, text)

    # --- both ports

    def _dump_progress(self, dump_bytes: int, port: HeldPort) -> None:
        port.set_dump_bytes(dump_bytes)
        self.watchers.publish_dump_bytes(dump_bytes)

    async def handle(
        self, items: Sequence[ConsoleItem], *, publish_plain: bool = True, is_own: bool = False
    ) -> None:
        """Store what is to be delivered; return once it is on disk, or waits for room there.

        Watchers get lines without a log level only if `publish_plain`. `is_own`: the items come
        from another port than the modem's, whose link knows of no restart that they announce.
        """
        for item in items:
            match item:
                case FaultText():
                    self._note_fault(item)
                case Reboot(line=line) if is_own:
                    self.on_restart(line)
        await self._way.handle(items, partial(self._show, publish_plain))

    async def _store(self, items: Sequence[ConsoleItem]) -> None:
        await self._forwarder.forward(items, datetime.now(UTC))
        if any(isinstance(item, Reboot) for item in items):
            await self._store_events()
        for item in items:
            if isinstance(item, CapturedDump) and item.data and not item.dump.usable:
                await self._keep(item)

    async def _keep(self, item: CapturedDump) -> None:
        """Store a dump that is not whole: the kit may print it this once."""
        what = f"the core dump is not whole, and not sent: {item.dump.detail}"
        try:
            path = await asyncio.to_thread(self._keep_dump, item.data)
        except AgentError as error:
            self.concern.log(logging.ERROR, f"{what}; nor is it kept: {error}")
            return
        hint = f"`cellagent capture coredump {shlex.quote(str(path))} --out core.bin`"
        self.concern.log(logging.WARNING, with_hint(f"{what}; it is kept, as the newest", hint))

    def _show(self, publish_plain: bool, items: Sequence[ConsoleItem]) -> None:
        published = [item for item in items if publish_plain or not _is_plain(item)]
        self._counts.lines -= len(items) - len(published)
        for item in items:
            self._count(item)
        self.watchers.publish(published)

    def _on_stored(self, error: AgentError | None) -> None:
        """Show in the status why items are not stored; None: they are stored again."""
        with self.concern.changing() as status:
            status.lost, status.unstored = self._forwarder.lost, self._forwarder.waiting
        if error is None:
            self.concern.set_well()
            return
        full = isinstance(error, OutboxFull)
        self.concern.record_failure(
            error if full else AgentError(f"not kept: {error}", hint=error.hint)
        )

    def _note_fault(self, line: FaultText) -> None:
        """Show a line of a crash's report in the status; count and log its crash, once."""
        with self.concern.changing() as status:
            status.crash = _crash_so_far(line, status.crash)
            status.faults += line.first
        if line.first:
            self._fault_is_taken = False
            self.concern.log(logging.INFO, f"the kit reports a fault: {line.what}")

    def _count(self, item: ConsoleItem) -> None:
        """Count an item in the status, each dump and each start once; log a dump."""
        with self.concern.changing() as status:
            match item:
                case ChunkLine():
                    status.chunks += 1
                case DamagedChunk():
                    status.damaged += 1
                    text = f"a chunk is lost, damaged on the line: {item.reason}"
                    self.concern.log(logging.WARNING, text)
                case CapturedDump():
                    status.dumps += 1
                    text = f"the kit crashed: a core dump, {item.dump.status.value}"
                    self.concern.log(logging.WARNING, text)
                    status.crash = _crash_with_dump(item, status.crash)
                case Reboot(is_start=True):
                    status.reboots += 1


def _crash_so_far(text: FaultText, crash: Crash | None) -> Crash:
    """Return a crash with what one more line of its report says."""
    if text.first or crash is None:
        crash = Crash(datetime.now(UTC), text.what)
    return Crash(
        crash.at,
        crash.what,
        crash.frame if text.address is None else f"0x{text.address:08x}",
        text.thread or crash.thread,
    )


def _crash_with_dump(item: CapturedDump, crash: Crash | None) -> Crash:
    """Return the crash that a dump is of: the one whose report has just come, or another."""
    now = datetime.now(UTC)
    if crash is None or now - crash.at > _REPORT_AND_DUMP:
        crash = Crash(now, f"a core dump, {item.dump.status.value}")
    frame = frame_registers(registers(item.dump, item.data)).get("pc")
    return crash if frame is None else msgspec.structs.replace(crash, frame=f"0x{frame:08x}")


def _classify(classifier: LineClassifier, items: Sequence[Item]) -> list[ConsoleItem]:
    classified: list[ConsoleItem] = []
    for item in items:
        if isinstance(item, Restart) and item.is_banner:
            continue  # it came as a log line
        if isinstance(item, Log | Unknown | Restart):
            classified += classifier.classify(item.text.encode())
    return classified


def _is_plain(item: ConsoleItem) -> bool:
    return isinstance(item, LogLine) and item.level is None
