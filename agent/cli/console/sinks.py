"""Sinks of `cellagent console` for chunks and core dumps: the outbox, and files."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.capture.dump_files import DumpFiles, write_device_file
from agent.cli.framework.session import Session
from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump
from agent.console.line_classifier import ConsoleItem
from agent.errors import UsageError
from agent.files.private_files import make_folder, private_opener
from agent.observability.ingest.device_identity import (
    DeviceIdentity,
    IdentityTracker,
    PartialIdentity,
    profile_identity,
)
from agent.tasks import cancel_and_wait
from at.protocol.counts import counted

if TYPE_CHECKING:
    from agent.wiring.forwarding import HandleItems


def device_identity(session: Session, given: PartialIdentity) -> IdentityTracker:
    """Return the device's identity: `given` by option takes precedence over the profile.

    Then come the kit's own events, its USB identity, and the id that `run` knows it by. Raises
    UsageError for a name that breaks its rule, UntrustedPlace.
    """
    from agent.daemon.kit.store import kits_folder, record_at
    from at.ports.usb import usb_kit_at

    configured_names = given | profile_identity(session.kit)
    configured_names.identity()  # raises before anything is opened
    port = session.kit.port
    usb = usb_kit_at(port, session.usb_ports)
    own = kits_folder(session.configuration.state_dir, session.configuration.name)
    record = record_at(own, port, usb) or record_at(own.parent, port, usb)
    known = PartialIdentity(
        record.known_id if record else "", usb.model.board if usb and usb.model else ""
    )
    return IdentityTracker(configured_names, lambda: known)


@contextlib.asynccontextmanager
async def outbox_sink(
    session: Session, names: IdentityTracker, note: Callable[[str], None]
) -> AsyncIterator[HandleItems]:
    """Give a function that stores chunks and dumps in the outbox, and deliver them meanwhile.

    `note` is called with each problem. Raises UsageError, OutboxHeld; at the end the reason why
    something is lost.
    """
    from agent.cli.observability.queueing import open_outbox
    from agent.outbox.delivery_loop import Delivery
    from agent.outbox.delivery_requests import ServiceSender
    from agent.wiring.forwarding import Forwarder

    if not names.sender:
        raise UsageError(
            "the service needs a name for the device",
            hint="`--device-serial ID`, or `cellagent config set kit.device_id ID`; or "
            "`cellagent run` once, which asks the modem",
        )
    with open_outbox(session.configuration) as outbox:
        async with session.client(unattended=True) as client:
            delivery = Delivery(outbox, ServiceSender(client))
            trouble = TroubleNotes(note)
            forwarder = Forwarder(outbox, names, wake=delivery.wake, on_failure=trouble.report)
            work = [asyncio.create_task(each) for each in (delivery.run(), forwarder.run())]

            async def store(items: Sequence[ConsoleItem]) -> None:
                await forwarder.forward(items, datetime.now(UTC))

            try:
                yield store
            finally:
                await cancel_and_wait(*work)
                await forwarder.flush()
                if lost := forwarder.lost + forwarder.waiting:
                    note(f"lost, as it could not be kept: {counted(lost, 'items')} (chunks, dumps)")
                await delivery.flush()
                totals = await outbox.atransact(lambda store: store.totals())
                note(f"{delivery.delivered} delivered, {totals.waiting} waiting in the outbox")
                if lost and trouble.reason is not None:
                    raise trouble.reason


class TroubleNotes:
    """Notes once that items wait in memory, and once that they are on disk."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._reported = False
        self.reason: Exception | None = None
        """The last one."""

    def report(self, error: Exception | None) -> None:
        """Take the reason why nothing is stored; None once everything is."""
        if error is not None and not self._reported:
            self._note(f"not kept yet, it waits in memory: {error}")
        if error is None and self._reported:
            self._note("all is kept now")
        self._reported = error is not None
        self.reason = error or self.reason


_MOST_WAITING = 1000  # chunks, and as many dumps, that wait in memory for room on the disk


class FileSink:
    """Appends chunks to FOLDER/chunks.jsonl, writes each dump to a file of its own; 0600.

    A file beside each dump names its device, which the dump itself does not. What cannot be
    written waits in memory, and is tried again with what comes next.
    """

    def __init__(self, folder: Path, names: IdentityTracker, note: Callable[[str], None]) -> None:
        """`note` is called with the file of each dump, and with each problem."""
        make_folder(folder)
        self._files = DumpFiles.unused(folder / "coredump.bin")
        self._chunk_file = folder / "chunks.jsonl"
        self._names = names
        self._note = note
        self._trouble = TroubleNotes(note)
        self._chunks: deque[bytes] = deque()
        self._dumps: deque[tuple[CapturedDump, DeviceIdentity]] = deque()
        self._lost = 0

    async def store(self, items: Sequence[ConsoleItem]) -> None:
        """Save chunks and dumps among the items, and what still waits."""
        for item in items:
            if isinstance(item, ChunkLine):
                self._names.observe(item.chunk)
                self._chunks.append(item.chunk)
            elif isinstance(item, CapturedDump):
                self._dumps.append((item, self._names.identity()))
        if not self._chunks and not self._dumps:
            return
        try:
            # In a thread: while the disk syncs, the kit goes on printing.
            await asyncio.to_thread(self._save)
        except OSError as error:
            self._trouble.report(error)
            for waiting in (self._chunks, self._dumps):
                while len(waiting) > _MOST_WAITING:
                    waiting.popleft()
                    self._lost += 1
        else:
            self._trouble.report(None)

    async def close(self) -> None:
        """Try once more to save what waits; note how much is lost, and raise the reason."""
        await self.store(())
        if lost := self._lost + len(self._chunks) + len(self._dumps):
            self._note(f"lost, as it could not be saved: {counted(lost, 'items')} (chunks, dumps)")
            if self._trouble.reason is not None:
                raise self._trouble.reason

    def _save(self) -> None:
        if self._chunks:
            _append(self._chunk_file, self._chunks)
            self._chunks.clear()
        while self._dumps:
            captured, device = self._dumps[0]
            path = self._files.write(captured)
            self._dumps.popleft()
            self._note(f"core dump, {captured.dump.status.value}: {path or 'no bytes'}")
            if path is not None:
                write_device_file(path, device)


def _append(path: Path, chunks: Sequence[bytes]) -> None:
    """Append chunks as lines, all or none. Raises OSError."""
    text = "".join(f'{{"chunk": "{chunk.hex()}"}}\n' for chunk in chunks)
    with open(path, "ab", buffering=0, opener=private_opener) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            left = memoryview(text.encode())
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # a device has no end to cut off
                file.truncate(size)  # half a line would damage the next one
            error.filename = str(path)  # that of a full disk does not name it
            raise
