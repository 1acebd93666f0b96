"""A lock that ends with the process, or before."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from at.ports.process_lock import HeldByAnother, ProcessLock


@pytest.mark.skipif(os.name != "posix", reason="no process is forked there")
def test_a_lock_that_is_released_is_free_though_a_fork_still_has_its_file(tmp_path: Path) -> None:
    """As a worker of multiprocessing has all that was open when it was forked."""
    lock = ProcessLock(tmp_path / "it.lock")
    with subprocess.Popen("cat", stdin=subprocess.PIPE, pass_fds=[lock._descriptor]):
        with pytest.raises(HeldByAnother):
            ProcessLock(tmp_path / "it.lock")
        lock.release()
        ProcessLock(tmp_path / "it.lock").release()
