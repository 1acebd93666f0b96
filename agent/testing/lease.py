"""One kit, one test at a time: processes that test on the same kits take turns."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from at.ports.process_lock import HeldByAnother, ProcessLock

if TYPE_CHECKING:
    from agent.testing.choice import KitEntry

_RETRY_S = 0.05


@contextlib.contextmanager
def leased(kits: Sequence[KitEntry], folder: Path) -> Iterator[KitEntry]:
    """Take the first of `kits` that is free, waiting until one is; give it back at the end.

    `folder` has the locks, which end with their process.
    """
    if kits[0].is_virtual:
        yield kits[0]
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        for kit in kits:
            name = hashlib.sha256(os.path.realpath(kit.port).encode()).hexdigest()[:16]
            with contextlib.suppress(HeldByAnother):
                lock = ProcessLock(folder / f"{name}.lock")
                try:
                    yield kit
                finally:
                    lock.release()
                return
        time.sleep(_RETRY_S)
