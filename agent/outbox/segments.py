"""Segments: the files of an outbox's frames. Items and notes are appended to the newest one.

A segment has all its room on the disk before its first frame, and two more stand ready. So on a
disk that others have filled there is room for notes of what was delivered; a segment of which
nothing waits any more is the next to stand ready, or its space is free.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.config.private_files import private_opener, sync_folder
from agent.config.trusted_places import require_trusted_file
from agent.outbox.frames import HEADER_SIZE, Frame, FrameCodec, FrameKind, Scan

SEGMENT_SIZE = 1 << 19
"""Bytes. Only what one transaction adds at its end makes a segment larger."""
NOTES_SIZE = SEGMENT_SIZE // 8
"""Bytes at the end of a segment in which no transaction begins."""
_SPARES = 2
"""One for notes while everything else waits, and one for when that is full of them."""
_NAME = re.compile(r"([0-9a-f]{32})-([0-9]{8})\.segment")
_TOTALS = "totals"
_NOWHERE = (1 << 64) - 1  # an offset that no segment has: its bytes are nothing there


@dataclass(slots=True)
class Segment:
    """A file of frames, which end at the offset `end`; `size` is what it takes of the disk."""

    path: Path
    number: int
    end: int
    size: int
    items: int = 0
    """How many of its items are still there."""
    live: int = 0
    """Bytes of their frames."""
    damaged: bool = False


class SegmentFiles:
    """The files in `folder`, which this process alone has. Raises OSError, UntrustedPlace."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        found = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        known = Counter(match[1] for match in found).most_common(1)
        self.name = known[0][0] if known else uuid.uuid4().hex
        """Of the outbox: part of the name of each segment, and of each item's key."""
        self.codec = FrameCodec(self.name)
        self.current: Segment | None = None
        """The segment that is appended to; None before the first, and while it is damaged."""
        self.newest = max((int(match[2]) for match in found), default=0)
        """The highest number of a segment."""
        self.paths = {folder / match[0]: int(match[2]) for match in found}
        """All files -> the number in their names, 0 for what stands ready."""
        self.paths |= {path: 0 for path in folder.glob("spare-*") if not path.suffix}
        self._spares: list[Path] = []
        self._descriptor = self._totals = -1
        for path in self.paths:
            require_trusted_file(path, path.stat())

    def close(self) -> None:
        """Close the files that are written to."""
        for descriptor in {self._descriptor, self._totals} - {-1}:
            os.close(descriptor)
        self._descriptor = self._totals = -1
        self.current = None

    def scan(self) -> Iterator[tuple[Path, Scan]]:
        """Read every file once; one that stands ready may hold frames of a former segment."""
        for path, number in self.paths.items():
            data = path.read_bytes()
            found = self.codec.scan(data, number)
            # All zeros stood ready: it was swapped with a segment, which has another name now.
            if found.frames or (number and (not data or data.count(0) < len(data))):
                yield path, found

    def keep(self, segments: Iterable[Segment], destroyed: Iterable[Path]) -> None:
        """Go on with these segments; the other files stand ready, are set aside or removed."""
        used = {segment.path: segment for segment in segments}
        self.newest = max(self.newest, *(segment.number for segment in used.values()), 0)
        for path, number in self.paths.items():
            if path not in used:
                self._release(path, path.stat().st_size, damaged=path in destroyed)
            elif not number:  # it was about to be begun, or swapped with one
                self.newest += 1
                used[path].path = path.rename(self._path_of(self.newest))

    def begin(self, segment: Segment) -> None:
        """Append to this segment from now on, whose frames end soundly."""
        self.close()
        self._descriptor = private_opener(segment.path, os.O_RDWR)
        self.current = segment

    def begin_next(self, note: bytes) -> Segment:
        """Begin the next segment with a note: all that must be known without earlier ones."""
        number = self.newest + 1
        content = self.codec.encode(FrameKind.NOTE, number, 0, 0, b"", note)
        segment = Segment(self._path_of(number), number, len(content), SEGMENT_SIZE)
        content += self.codec.encode(FrameKind.END, number, len(content), 0)
        segment.size = max(segment.size, len(content))
        if not self._spares:  # none is a spare yet: where one is, a segment has been
            self._make_spare(self._folder / "unfinished")
        _write_file(self._spares[-1], content, os.O_RDWR)
        self._spares.pop().rename(segment.path)
        sync_folder(self._folder)
        self.newest = number
        self.begin(segment)
        return segment

    def reserve(self, size: int) -> None:
        """Have room on the disk for `size` bytes of items, and for notes behind them.

        Raises OSError where the disk is full; nothing of it is left there then.
        """
        segment = self.current
        assert segment is not None
        while len(self._spares) < _SPARES:
            self._make_spare(self._spare_name())
        wanted = segment.end + size + NOTES_SIZE
        if segment.end + size > segment.size - HEADER_SIZE:
            try:
                for at in range(segment.size, wanted, SEGMENT_SIZE):
                    _write(self._descriptor, bytes(min(SEGMENT_SIZE, wanted - at)), at)
            except OSError:
                os.ftruncate(self._descriptor, segment.size)
                raise
            segment.size = wanted

    def append(self, frames: Sequence[bytes], size: int) -> None:
        """Append frames of `size` bytes, encoded for where they will stand, and sync them."""
        segment = self.current
        assert segment is not None
        end = segment.end + size
        finish = self.codec.encode(FrameKind.END, segment.number, end, 0)
        _write(self._descriptor, b"".join((*frames, finish)), segment.end)
        segment.end, segment.size = end, max(segment.size, end + HEADER_SIZE)

    def save_totals(self, last_id: int, items: int) -> None:
        """Write, unsynced, the last id and how many items there are.

        It is read only when the newest frames are lost, to count them; no more depends on it.
        """
        number, head = self.current.number if self.current else 0, b"%d" % items
        with suppress(OSError):
            if self._totals < 0:  # it stays open: that is a third of the time of a synced append
                self._totals = private_opener(self._folder / _TOTALS, os.O_RDWR | os.O_CREAT)
            os.lseek(self._totals, 0, os.SEEK_SET)
            frame = self.codec.encode(FrameKind.END, number, _NOWHERE, last_id, head)
            os.write(self._totals, frame)

    def saved_totals(self) -> tuple[int, int, int]:
        """Return the newest segment, the last id and the number of items, zeros if lost."""
        with suppress(OSError):
            found = self.codec.decode((self._folder / _TOTALS).read_bytes(), 0, _NOWHERE)
            if found is not None and found.whole:
                return found.segment, found.number, int(found.head)
        return 0, 0, 0

    def read(self, segment: Segment, offset: int, size: int) -> Frame | None:
        """Return the frame that stands there, None if its bytes are damaged."""
        with suppress(OSError), segment.path.open("rb") as file:  # OSError: of a bad block
            file.seek(offset)
            frame = self.codec.decode(file.read(size), 0, offset, segment.number)
            return frame if frame and frame.whole else None
        return None

    def release(self, segment: Segment) -> None:
        """Use a segment of which nothing is needed any more for the next ones, or remove it."""
        self._release(segment.path, segment.size, damaged=segment.damaged)

    def _release(self, path: Path, size: int, *, damaged: bool) -> None:
        if damaged:  # a person may want to look at it
            path.rename(path.with_name(f"{path.name}.{os.urandom(2).hex()}.damaged"))
        elif size >= SEGMENT_SIZE and len(self._spares) < _SPARES:
            path = path.rename(self._spare_name()) if path.suffix else path
            os.truncate(path, SEGMENT_SIZE)
            self._spares.append(path)
        else:
            path.unlink()

    def _path_of(self, number: int) -> Path:
        return self._folder / f"{self.name}-{number:08d}.segment"

    def _spare_name(self) -> Path:
        names = [self._folder / f"spare-{number}" for number in range(_SPARES + 1)]
        return next(path for path in names if not path.exists())

    def _make_spare(self, path: Path) -> None:
        try:
            # Half of one that a kill leaves is removed at the next start, by its size.
            _write_file(path, bytes(SEGMENT_SIZE), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        self._spares.append(path)


def _write_file(path: Path, data: bytes, flags: int) -> None:
    """Write from the beginning, and sync."""
    descriptor = private_opener(path, flags)
    try:
        _write(descriptor, data, 0)
    finally:
        os.close(descriptor)


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
