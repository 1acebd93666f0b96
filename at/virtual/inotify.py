"""Who opens and closes a file, from the kernel: the standard library does not wrap inotify."""

from __future__ import annotations

import ctypes
import os
import struct

_OPENED, _CLOSED = 0x20, 0x08 | 0x10  # IN_OPEN; IN_CLOSE_WRITE or IN_CLOSE_NOWRITE
_EVENT = struct.Struct("iIII")
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class OpenCounter:
    """Counts how many times a file is open, from now on. Raises OSError where inotify is not."""

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

    def read(self) -> bool:
        """Take in what happened; return whether the last opener has gone since the last call."""
        gone = False
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return gone
            place = 0
            while place < len(data):
                _, mask, _, name_size = _EVENT.unpack_from(data, place)
                place += _EVENT.size + name_size
                if mask & _OPENED:
                    self.open += 1
                elif mask & _CLOSED:
                    self.open = max(0, self.open - 1)
                    gone = gone or self.open == 0

    def close(self) -> None:
        """Stop counting."""
        os.close(self.fd)
