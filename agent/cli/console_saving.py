"""What `cellagent console` saves to files of what the kit prints, synced."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING

from agent.cli.console_keeping import Trouble
from agent.cli.dump_files import DumpFiles
from agent.cli.dump_owners import write_owner
from agent.config.private import make_private_folder
from agent.console.chunk_lines import ChunkLine
from agent.console.dump_lines import CapturedDump

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agent.console.reader import ConsoleItem
    from agent.observability.device_identity import DeviceIdentity
    from agent.observability.device_names import DeviceNames

_MOST_WAITING = 1000  # chunks, and as many dumps, that wait in memory for room on the disk


class Saving:
    """Appends chunks to FOLDER/chunks.jsonl, writes each dump to a file of its own; 0600.

    Beside a dump stands whose it is: it does not say so itself. What the disk does not take waits
    in memory, and is tried again with what comes next.
    """

    def __init__(self, folder: Path, names: DeviceNames, note: Callable[[str], None]) -> None:
        """`note` hears where each dump is, and of trouble."""
        make_private_folder(folder)
        self._files = DumpFiles.unused(folder / "coredump.bin")
        self._chunk_file = folder / "chunks.jsonl"
        self._names = names
        self._note = note
        self._trouble = Trouble(note)
        self._chunks: deque[bytes] = deque()
        self._dumps: deque[tuple[CapturedDump, DeviceIdentity]] = deque()
        self._lost = 0

    async def keep(self, items: Sequence[ConsoleItem]) -> None:
        """Save what is to be saved, and what still waits."""
        for item in items:
            if isinstance(item, ChunkLine):
                self._names.hear(item.chunk)
                self._chunks.append(item.chunk)
            elif isinstance(item, CapturedDump):
                self._dumps.append((item, self._names.identity()))
        if not self._chunks and not self._dumps:
            return
        try:
            # In a thread: while the disk syncs, the kit goes on printing.
            await asyncio.to_thread(self._save)
        except OSError as error:
            self._trouble.hear(error)
            for waiting in (self._chunks, self._dumps):
                while len(waiting) > _MOST_WAITING:
                    waiting.popleft()
                    self._lost += 1
        else:
            self._trouble.hear(None)

    async def close(self) -> None:
        """Try once more to save what waits; say what is lost."""
        await self.keep(())
        if lost := self._lost + len(self._chunks) + len(self._dumps):
            self._note(f"{lost} chunks and dumps are lost: they could not be saved")

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
                write_owner(path, device)


def _append(path: Path, chunks: Sequence[bytes]) -> None:
    """Append chunks as lines, all or none. Raises OSError."""
    text = "".join(f'{{"chunk": "{chunk.hex()}"}}\n' for chunk in chunks)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            left = memoryview(text.encode())
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)  # half a line would damage the next one
            raise
