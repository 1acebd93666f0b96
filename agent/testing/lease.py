"""One kit, one test at a time: processes that test on the same kits take turns."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agent.config.paths import state_dir
from agent.config.private_files import make_folder
from at.ports.process_lock import HeldByAnother, ProcessLock

if TYPE_CHECKING:
    from agent.testing.choice import KitEntry

_RETRY_S = 0.05


@contextlib.contextmanager
def leased(kits: Sequence[KitEntry]) -> Iterator[KitEntry]:
    """Take the first of `kits` that is free, waiting until one is; give it back at the end.

    A virtual one always is. The locks of the others are this user's, and end with their process.
    Raises FolderUnusable where they cannot be made.
    """
    folder = state_dir() / "leases"
    while True:
        for kit in kits:
            if kit.is_virtual:
                yield kit
                return
            make_folder(folder)
            name = hashlib.sha256(os.path.realpath(kit.port).encode()).hexdigest()[:16]
            try:
                lock = ProcessLock(folder / f"{name}.lock")
            except HeldByAnother:
                continue
            try:
                yield kit
            finally:
                lock.release()
            return
        time.sleep(_RETRY_S)
