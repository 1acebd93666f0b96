"""Segments: the files of an outbox's frames. Items and notes are appended to the newest one.

Which segment a file holds is in its frames; its name tells nothing but the outbox. A file has all
its room on the disk before its first frame, and two more stand ready. So on a disk that others have
filled there is room for notes of what was delivered; a file of which nothing waits any more stands
ready next, or its space is free.
"""

import os
import re
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from agent.files.private_files import private_opener, sync_folder
from agent.files.trusted_places import require_trusted_file
from agent.outbox.frames import HEADER_SIZE, Frame, FrameCodec, FrameKind, Record

SEGMENT_SIZE = 1 << 19
"""Bytes. Only what one transaction adds at its end makes a segment larger."""
NOTES_SIZE = SEGMENT_SIZE // 8
"""Bytes at the end of a segment in which no transaction begins."""
_SPARES = 2
"""One for notes while everything else waits, and one for when that is full of them."""
_NAME = re.compile(r"([0-9a-f]{32})-[0-9]+\.segment")
_TOTALS = "totals"
_NOWHERE = (1 << 64) - 1  # an offset that no segment has: its bytes are nothing there
_END = Record(FrameKind.END)


@dataclass(slots=True, eq=False)
class Segment:
    """A segment in its file; its frames end at the offset `end`."""

    path: Path
    number: int
    size: int
    """Bytes that the file takes of the disk."""
    end: int = 0
    is_sound: bool = True
    items: int = 0
    """How many of its items are still there."""
    live: int = 0
    """Bytes of their frames."""
    descriptor: int = -1
    """-1 while nothing is written to it."""


class SegmentFiles:
    """The files in `folder`, which this process alone has. Raises OSError, UntrustedPlace."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        found = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        known = Counter(match[1] for match in found).most_common(1)
        self.name = known[0][0] if known else uuid.uuid4().hex
        """Of the outbox: part of the name of each file, and of each item's key."""
        self.paths = [folder / match[0] for match in found]
        self.current: Segment | None = None
        """The segment that is appended to; None before the first, and while it is damaged."""
        self.newest = 0
        """The highest number of a segment."""
        self._codec = FrameCodec(self.name)
        self._spares: list[Path] = []
        self._totals = -1
        for path in self.paths:
            require_trusted_file(path, path.stat())

    def close(self) -> None:
        """Close the files that are written to."""
        self._leave_current()
        if self._totals >= 0:
            os.close(self._totals)
        self._totals = -1

    def _leave_current(self) -> None:
        if self.current is not None and self.current.descriptor >= 0:
            os.close(self.current.descriptor)
        self.current = None

    def scan(self) -> Iterator[tuple[Path, dict[int, list[Frame]] | None]]:
        """Read every file once; None for one that is destroyed, and not empty."""
        for path in self.paths:
            data = path.read_bytes()
            found = self._codec.scan(data)
            yield path, found if found or not data.strip(b"\0") else None

    def begin(self, records: Sequence[Record]) -> Segment:
        """Begin the next segment with these records."""
        if not self._spares:  # none is a spare yet: where one is, a segment has been
            self._make_spare()
        segment = Segment(self._spares[-1], self.newest + 1, SEGMENT_SIZE)
        segment.descriptor = private_opener(segment.path, os.O_RDWR)
        try:
            self._append(segment, records)
        except OSError:
            os.close(segment.descriptor)
            raise
        self._spares.pop()
        self.newest += 1
        self._leave_current()
        self.current = segment
        return segment

    def resume(self, segment: Segment) -> None:
        """Append to this segment from now on."""
        segment.descriptor = private_opener(segment.path, os.O_RDWR)
        self.current = segment

    def reserve(self, size: int) -> None:
        """Reserve room on the disk for `size` bytes of items, and for notes behind them.

        Raises OSError where the disk is full; nothing of it is left there then.
        """
        segment = self.current
        assert segment is not None
        while len(self._spares) < _SPARES:
            self._make_spare()
        if segment.end + size + HEADER_SIZE > segment.size:
            _grow(segment, segment.end + size + NOTES_SIZE)

    def append(self, records: Sequence[Record]) -> None:
        """Append records to the current segment, and sync them."""
        assert self.current is not None
        self._append(self.current, records)

    def _append(self, segment: Segment, records: Sequence[Record]) -> None:
        data = self._codec.encode(segment.number, segment.end, (*records, _END))
        end = segment.end + len(data)
        if end > segment.size:  # before a byte of what is there is written over
            _grow(segment, end)
        _write(segment.descriptor, data, segment.end)
        segment.end = end - HEADER_SIZE

    def save_totals(self, last_id: int, items: int) -> None:
        """Write, unsynced, the last id and how many items there are.

        It is read only when the newest frames are lost, to count them; no more depends on it.
        """
        with suppress(OSError):
            if self._totals < 0:  # it stays open: that is a third of the time of a synced append
                self._totals = private_opener(self._folder / _TOTALS, os.O_RDWR | os.O_CREAT)
            os.lseek(self._totals, 0, os.SEEK_SET)
            totals = Record(FrameKind.END, last_id, b"%d" % items)
            os.write(self._totals, self._codec.encode(self.newest, _NOWHERE, [totals]))

    def saved_totals(self) -> tuple[int, int, int]:
        """Return the newest segment, the last id and the number of items, zeros if lost."""
        with suppress(OSError):
            data = (self._folder / _TOTALS).read_bytes()
            if (found := self._codec.decode(data, 0, _NOWHERE)) is not None:
                return found.segment, found.record.number, int(found.record.head)
        return 0, 0, 0

    def read(self, segment: Segment, offset: int, size: int) -> Record | None:
        """Return the record of the frame that stands there, None if its bytes are damaged."""
        with suppress(OSError), segment.path.open("rb") as file:  # OSError: of a bad block
            file.seek(offset)
            frame = self._codec.decode(file.read(size), 0, offset)
            return frame and frame.record
        return None

    def release(self, path: Path, *, is_damaged: bool = False) -> None:
        """Use a file of which nothing is needed any more for the next segments, or remove it."""
        if is_damaged:  # a person may want to look at it
            path.rename(path.with_name(f"{path.name}.{os.urandom(2).hex()}.damaged"))
        elif path.stat().st_size >= SEGMENT_SIZE and len(self._spares) < _SPARES:
            os.truncate(path, SEGMENT_SIZE)
            self._spares.append(path)
        else:
            path.unlink()

    def _make_spare(self) -> None:
        names = (self._folder / f"{self.name}-{number}.segment" for number in count())
        spare = Segment(next(path for path in names if not path.exists()), 0, 0)
        spare.descriptor = private_opener(spare.path, os.O_RDWR | os.O_CREAT)
        try:
            # Half of one that a kill leaves is removed at the next start, by its size.
            _grow(spare, SEGMENT_SIZE)
        except OSError:
            spare.path.unlink()
            raise
        finally:
            os.close(spare.descriptor)
        sync_folder(self._folder)
        self._spares.append(spare.path)


def _grow(segment: Segment, size: int) -> None:
    """Grow a segment to `size` bytes of the disk, or leave it as it was. Raises OSError."""
    try:
        for at in range(segment.size, size, SEGMENT_SIZE):
            _write(segment.descriptor, bytes(min(SEGMENT_SIZE, size - at)), at)
    except OSError:
        os.ftruncate(segment.descriptor, segment.size)
        raise
    segment.size = size


def _write(descriptor: int, data: bytes, offset: int) -> None:
    """Write and sync."""
    os.lseek(descriptor, offset, os.SEEK_SET)
    while data:
        data = data[os.write(descriptor, data) :]
    _sync(descriptor)


if sys.platform == "darwin":
    from fcntl import F_FULLFSYNC, fcntl

    def _sync(descriptor: int) -> None:
        fcntl(descriptor, F_FULLFSYNC)
else:
    _sync = getattr(os, "fdatasync", os.fsync)
