"""The lock beside a kit's journal: one process at a time works on the kit's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.config.private_files import make_private_folder
from agent.errors import ResourceUnavailable
from at.ports.process_lock import HeldByAnother, ProcessLock


class JobsHeld(ResourceUnavailable):
    """Another process carries out this kit's jobs."""

    kind = "fota-busy"


@contextmanager
def sole_worker(folder: Path) -> Iterator[None]:
    """Hold a kit's jobs: no second process works on them. Raises JobsHeld."""
    make_private_folder(folder)
    try:
        lock = ProcessLock(folder / "lock")
    except HeldByAnother as held:
        raise JobsHeld(
            f"another cellagent carries out this kit's jobs: {held.holder}",
            hint="`cellagent status` shows the agent; or wait for the other command",
        ) from held
    try:
        yield
    finally:
        lock.release()
