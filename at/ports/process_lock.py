"""A lock file that names its holder.

The lock ends with the process, however that ends, and with those that have inherited it.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from at.ports.holders import shown_process

_PID_DIGITS = 20


class HeldByAnother(Exception):
    """Another process, or this one, holds the lock; `holder` names it: "cellagent (PID 4242)"."""

    def __init__(self, pid: str) -> None:
        self.holder = shown_process(Path("/proc", pid)) if pid else "another process"
        super().__init__(f"held by {self.holder}")


class ProcessLock:
    """Held from construction to `release`. Raises HeldByAnother, or OSError for the file.

    The file, 0600, is never deleted: otherwise two processes could lock two files of one name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_INHERIT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.lseek(self._descriptor, 1, os.SEEK_SET)
            pid = os.read(self._descriptor, _PID_DIGITS).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise HeldByAnother(pid) from error
        self.name_holder(os.getpid())

    def fileno(self) -> int:
        """Return its file descriptor: who inherits that holds the lock after this process."""
        return self._descriptor

    def name_holder(self, pid: int) -> None:
        """Name the process that others are told of."""
        with suppress(OSError):  # on a full disk the holder has no name
            # Not truncated before: on a full disk its block would be gone.
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, b"\n%-*d\n" % (_PID_DIGITS, pid))

    def is_replaced(self) -> bool:
        """Return whether another file has the name now: its folder was removed and made again."""
        with suppress(OSError):
            return not os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        return False

    def release(self) -> None:
        """Release the lock, also where a process that was forked meanwhile still has the file."""
        _unlock(self._descriptor)
        os.close(self._descriptor)


if sys.platform == "win32":
    import msvcrt

    _NO_INHERIT = os.O_NOINHERIT | os.O_BINARY

    def _lock(descriptor: int) -> None:
        # Only the first byte, so that the number behind it can be read.
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        del descriptor  # no process is forked there: closed, it is free
else:
    import fcntl

    _NO_INHERIT = os.O_CLOEXEC

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
