"""Who opens and closes a file, from the kernel: the standard library does not wrap inotify."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path

_OPENED, _CLOSED = 0x20, 0x08 | 0x10  # IN_OPEN; IN_CLOSE_WRITE or IN_CLOSE_NOWRITE
_EVENT = struct.Struct("iIII")
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class OpenCounter:
    """Counts how many times a file is open, from now on. Raises OSError where inotify is not.

    The kernel gives two equal events that were not read in time as one. So where the last opener
    seems to have gone, /proc is asked whether another is still there.
    """

    def __init__(self, path: str) -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            self.fd = libc.inotify_init1(_FLAGS)
            added = libc.inotify_add_watch(self.fd, os.fsencode(path), _OPENED | _CLOSED)
        except AttributeError as error:
            raise OSError("no inotify on this system") from error
        if self.fd < 0 or added < 0:
            raise OSError(ctypes.get_errno(), "inotify", path)
        self.open = 0
        self._path = path
        self._ours = _descriptors(path)

    def read(self) -> bool:
        """Take in what happened; return whether the last opener has gone since the last call."""
        gone = False
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                break
            place = 0
            while place < len(data):
                _, mask, _, name_size = _EVENT.unpack_from(data, place)
                place += _EVENT.size + name_size
                if mask & _OPENED:
                    self.open += 1
                elif mask & _CLOSED:
                    self.open = max(0, self.open - 1)
                    gone = gone or self.open == 0
        if gone and self.open == 0 and self._ours:
            self.open = max(0, _descriptors(self._path) - self._ours)
            gone = self.open == 0
        return gone

    def close(self) -> None:
        """Stop counting."""
        os.close(self.fd)


def _descriptors(path: str) -> int:
    """Return how many descriptors of processes that we may look into lead to a file."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError), os.scandir(process / "fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found += os.readlink(entry.path) == path  # noqa: PTH115 - thousands of them
    return found
