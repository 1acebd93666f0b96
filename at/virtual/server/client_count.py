"""Counts the clients of terminals: one inotify instance tells of all that a process serves."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

_OPENED, _CLOSED = 0x20, 0x08 | 0x10  # IN_OPEN; IN_CLOSE_WRITE or IN_CLOSE_NOWRITE
_OVERFLOW = 0x4000  # IN_Q_OVERFLOW: events were lost
_EVENT = struct.Struct("iIII")


class ClientCount:
    """Counts how many times a file is open, from now on. Raises OSError without inotify.

    `changed` is called after openings and closings, with whether the last opener has gone. The
    kernel merges two equal events that were not read in time. So when the last opener seems to have
    gone, /proc tells whether another one remains.
    """

    def __init__(self, path: str, changed: Callable[[bool], None]) -> None:
        self.open = 0
        self._path = path
        self._changed = changed
        self._ours = _descriptors(path, "self")
        self._told = False
        self._inotify = _Inotify.of_this_loop()
        self._watch = self._inotify.add(path, self)

    def update(self) -> None:
        """Count what has happened up to now."""
        self._inotify.read()

    def count(self, mask: int) -> None:
        """Count one event of the file; `settle` then tells of it."""
        if mask & _OPENED:
            self.open += 1
        elif mask & _CLOSED:
            self.open = max(0, self.open - 1)
        self._told = self._told or self.open == 0

    def settle(self, *, lost: bool) -> None:
        """Tell what has changed; where events were `lost`, count anew."""
        gone, self._told = self._told or lost, False
        if gone and (lost or self.open == 0) and self._ours:
            self.open = max(0, _descriptors(self._path, "[0-9]*") - self._ours)
        self._changed(gone and self.open == 0)

    def close(self) -> None:
        """Stop counting."""
        self._inotify.remove(self._watch)


class _Inotify:
    """The one inotify instance of an event loop, as long as it has files to watch."""

    _of_loops: ClassVar[dict[asyncio.AbstractEventLoop, _Inotify]] = {}

    @classmethod
    def of_this_loop(cls) -> _Inotify:
        """Return the instance of the running loop, made where there is none. Raises OSError."""
        loop = asyncio.get_running_loop()
        return cls._of_loops.get(loop) or cls(loop)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._libc, self._fd = _instance()
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify")
        self._loop = loop
        self._counts: dict[int, ClientCount] = {}
        self._of_loops[loop] = self
        loop.add_reader(self._fd, self.read)

    def add(self, path: str, count: ClientCount) -> int:
        """Watch a file; return the number for `remove`. Raises OSError."""
        watch = int(self._libc.inotify_add_watch(self._fd, os.fsencode(path), _OPENED | _CLOSED))
        if watch < 0:
            self._close_if_unused()
            raise OSError(ctypes.get_errno(), "inotify", path)
        self._counts[watch] = count
        return watch

    def remove(self, watch: int) -> None:
        """Watch a file no more."""
        del self._counts[watch]
        self._libc.inotify_rm_watch(self._fd, watch)
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if not self._counts:
            del self._of_loops[self._loop]
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def read(self) -> None:
        """Hand pending events to the counts, and have those settle that got one."""
        got: dict[ClientCount, None] = {}
        lost = False
        while True:
            try:
                data = os.read(self._fd, 65536)
            except BlockingIOError:
                break
            offset = 0
            while offset < len(data):
                watch, mask, _, name_size = _EVENT.unpack_from(data, offset)
                offset += _EVENT.size + name_size
                lost = lost or bool(mask & _OVERFLOW)
                if (count := self._counts.get(watch)) is not None:
                    count.count(mask)
                    got[count] = None
        for count in tuple(self._counts.values()) if lost else got:
            count.settle(lost=lost)


def _descriptors(path: str, processes: str) -> int:
    """Return how many descriptors refer to a file, over the processes that we may inspect."""
    found = 0
    for process in Path("/proc").glob(processes):
        with contextlib.suppress(OSError), os.scandir(process / "fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found += os.readlink(entry.path) == path  # noqa: PTH115 - thousands of them
    return found


def _instance() -> tuple[ctypes.CDLL, int]:
    """Return the C library and the descriptor that it gave, -1 for none. Raises OSError."""
    if sys.platform != "linux":
        raise OSError("no inotify on this system")
    libc = ctypes.CDLL(None, use_errno=True)
    return libc, libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
