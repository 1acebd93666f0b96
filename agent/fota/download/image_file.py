"""The file that an image arrives in: appended to, hashed on the way, started over at need."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from agent.config.private_files import private_opener
from agent.fota.download.ranges import DownloadError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

_HASH_BLOCK_BYTES = 1024 * 1024
_SPARE_BYTES = 1024 * 1024
"""Left free beside the image, for the journal and others."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class DiskFull(DownloadError):
    """There is no room for the image; what had arrived was removed."""

    kind = "disk-full"


class ImageFile:
    """One image on its way, mode 0600. `size` bytes are there, `hexdigest` is over these."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._digest = hashlib.sha256()
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._handle = private_opener(path, flags)
        except OSError as error:
            raise self._named(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._handle)

    @property
    def hexdigest(self) -> str:
        """SHA-256 of the bytes that are there."""
        return self._digest.hexdigest()

    async def load(self, limit: int) -> None:
        """Hash what an earlier try left; what is longer than the file can be is dropped."""
        if os.fstat(self._handle).st_size > limit:
            self.restart()
        else:
            await asyncio.to_thread(self._hash_what_is_there)

    def check_room(self, size_bytes: int) -> None:
        """Raise DiskFull unless a file of this size fits beside what else needs room."""
        free = shutil.disk_usage(self.path.parent).free
        needed = size_bytes - self.size + _SPARE_BYTES
        if free < needed:
            self.path.unlink(missing_ok=True)
            raise DiskFull(
                f"the image needs {needed} more bytes in {self.path.parent}, {free} are free",
                hint="make room; the job can then be offered again",
            )

    def restart(self) -> None:
        """Drop what is there."""
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        self.size = 0
        self._digest = hashlib.sha256()

    def append(self, data: bytes | memoryview) -> None:
        """Write and hash, at once: what a kill interrupts here is at most this piece."""
        self._digest.update(data)
        try:
            written = os.write(self._handle, data)
            while written < len(data):
                written += os.write(self._handle, memoryview(data)[written:])
        except OSError as error:
            raise self._named(error) from error
        self.size += len(data)

    def holds(self, at: int, data: bytes | memoryview) -> bool:
        """Tell whether these bytes are there at this place."""
        os.lseek(self._handle, at, os.SEEK_SET)
        found = os.read(self._handle, len(data))
        os.lseek(self._handle, self.size, os.SEEK_SET)
        return found == data

    async def sync(self) -> None:
        """Make it durable."""
        try:
            await asyncio.to_thread(os.fsync, self._handle)
        except OSError as error:
            raise self._named(error) from error

    def _hash_what_is_there(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()
        os.lseek(self._handle, 0, os.SEEK_SET)
        while block := os.read(self._handle, _HASH_BLOCK_BYTES):
            self._digest.update(block)
            self.size += len(block)

    def _named(self, error: OSError) -> DownloadError:
        if error.errno in _NO_ROOM:
            self.path.unlink(missing_ok=True)
            return DiskFull(f"no room left in {self.path.parent}: the image was removed")
        return DownloadError(f"{self.path}: {error.strerror}")
