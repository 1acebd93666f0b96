"""The lock that makes a folder one process's; it ends with the process, however that ends."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from agent.observability.outbox.items import OutboxHeld

if TYPE_CHECKING:
    from pathlib import Path

_PID_DIGITS = 20


class FolderLock:
    """Held from construction to `release`. Raises OutboxHeld, naming the process that holds it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_INHERIT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError as exc:
            os.lseek(self._descriptor, 1, os.SEEK_SET)
            holder = os.read(self._descriptor, _PID_DIGITS).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise OutboxHeld(
                f"the outbox in {path.parent} is held by process {holder or 'unknown'}",
                hint="it is the running agent's: ask it with `cellagent status`, or stop it first",
            ) from exc
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, b"\n%d\n" % os.getpid())

    def release(self) -> None:
        """Let another process have the folder."""
        os.close(self._descriptor)


if sys.platform == "win32":
    import msvcrt

    _NO_INHERIT = os.O_NOINHERIT | os.O_BINARY

    def _lock(descriptor: int) -> None:
        # Only the first byte, so that the number behind it can be read.
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    _NO_INHERIT = os.O_CLOEXEC

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
