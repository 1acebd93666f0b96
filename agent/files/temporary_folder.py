"""A folder of one process: nothing of it outlives the process by more than the next one's start."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from at.ports.process_lock import HeldByAnother, ProcessLock

_LOCK = "lock"


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """Make a folder below a name, 0700, and delete it in the end, with those that a kill left."""
    for left in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        _delete_left(left)
    # Another that starts may be at it, too, once its lock is free.
    with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as made:
        lock = ProcessLock(Path(made, _LOCK))
        try:
            yield Path(made)
        finally:
            lock.release()


def _delete_left(folder: Path) -> None:
    """Delete a folder of this user whose process is gone."""
    with suppress(OSError, HeldByAnother):
        is_ours = sys.platform == "win32" or folder.lstat().st_uid == os.geteuid()
        # One that is just being made has no lock yet, or one in which no holder stands.
        if is_ours and (folder / _LOCK).stat().st_size:
            ProcessLock(folder / _LOCK).release()
            shutil.rmtree(folder)
