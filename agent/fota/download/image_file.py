"""The file that an image arrives in: appended to, hashed, resumed; removed on a full disk."""

import asyncio
import errno
import hashlib
import os
import shutil
from pathlib import Path
from typing import Self

from agent.files.private_files import private_opener
from agent.fota.download.ranges import DownloadError

_HASH_BLOCK_BYTES = 1024 * 1024
_SPARE_BYTES = 1024 * 1024
"""Left free beside the image, for the journal and others."""
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
_MAKE_ROOM = "make room there: `df -h` shows what that disk has left"


class DiskFull(DownloadError):
    """The disk has no space for the image; what had arrived was removed."""

    kind = "disk-full"


class ImageFile:
    """The file that an image arrives in, mode 0600: `size` bytes, `hexdigest` over these."""

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

    def __exit__(self, *_error: object) -> None:
        os.close(self._handle)

    @property
    def hexdigest(self) -> str:
        """SHA-256, in hex, of the bytes at hand."""
        return self._digest.hexdigest()

    async def load(self, limit: int) -> None:
        """Hash the bytes of an earlier try; drop them if they exceed `limit` bytes."""
        if os.fstat(self._handle).st_size > limit:
            self.restart()
        else:
            await asyncio.to_thread(self._hash_content)
            os.lseek(self._handle, self.size, os.SEEK_SET)

    def check_space(self, size_bytes: int) -> None:
        """Check that a file of this size fits on the disk, with a reserve. Raises DiskFull."""
        free = shutil.disk_usage(self.path.parent).free
        missing = size_bytes - self.size
        if free < missing + _SPARE_BYTES:
            self.path.unlink(missing_ok=True)
            raise DiskFull(
                f"the image needs {missing} more bytes in {self.path.parent}: {free} are free, of "
                f"which {_SPARE_BYTES} are left for others",
                hint=_MAKE_ROOM,
            )

    def restart(self) -> None:
        """Drop the bytes at hand."""
        os.ftruncate(self._handle, 0)
        os.lseek(self._handle, 0, os.SEEK_SET)
        self.size = 0
        self._digest = hashlib.sha256()

    def append(self, data: bytes | memoryview) -> None:
        """Write and hash a piece; a kill in the middle of it costs this piece at most."""
        self._digest.update(data)
        try:
            written = os.write(self._handle, data)
            while written < len(data):
                written += os.write(self._handle, memoryview(data)[written:])
        except OSError as error:
            raise self._named(error) from error
        self.size += len(data)

    def holds(self, at: int, data: bytes | memoryview) -> bool:
        """Return whether the file has these bytes at offset `at`."""
        os.lseek(self._handle, at, os.SEEK_SET)
        content = os.read(self._handle, len(data))
        os.lseek(self._handle, self.size, os.SEEK_SET)
        return content == data

    async def sync(self) -> None:
        """Make it durable."""
        try:
            await asyncio.to_thread(os.fsync, self._handle)
        except OSError as error:
            raise self._named(error) from error

    def _hash_content(self) -> None:
        # By a handle of its own: given up meanwhile, ours is closed, and its number another file's.
        with self.path.open("rb", buffering=0) as file:
            while block := file.read(_HASH_BLOCK_BYTES):
                self._digest.update(block)
                self.size += len(block)

    def _named(self, error: OSError) -> DownloadError:
        if error.errno in _DISK_FULL:
            self.path.unlink(missing_ok=True)
            what = f"no room left in {self.path.parent}: the image was removed"
            return DiskFull(what, hint=_MAKE_ROOM)
        return DownloadError(f"{self.path}: {error.strerror}")
