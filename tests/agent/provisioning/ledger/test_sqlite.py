"""A ledger in a file: private, written by one bench, read by others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from ledgers import NOW, UUID, opened

from agent.provisioning.ledger import (
    LedgerHeld,
    open_ledger,
)


def test_a_second_bench_on_the_same_file_is_told_so_and_reading_is_not_kept_waiting(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.sqlite")
    first = opened(path)
    first.claim(UUID)
    with pytest.raises(LedgerHeld, match=rf"another bench on this host .*\(PID {os.getpid()}\)"):
        opened(path)
    reader = open_ledger(path, "reader", writes=False)
    assert [record.uuid for record in reader.boards()] == [UUID]
    reader.close()
    first.close()
    opened(path).close()


def test_a_ledger_that_may_only_be_read_is_read_and_nothing_about_it_changes(
    tmp_path: Path,
) -> None:
    """A backup, or a disk that its system has made read-only."""
    path = tmp_path / "backup" / "ledger.sqlite"
    ledger = opened(str(path))
    ledger.claim(UUID)
    ledger.close()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    before = path.stat()
    reader = open_ledger(str(path), "reader", writes=False)
    assert [record.uuid for record in reader.boards()] == [UUID]
    reader.close()
    assert (path.stat().st_mtime_ns, path.stat().st_mode) == (before.st_mtime_ns, before.st_mode)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o500
    path.parent.chmod(0o700)


def test_the_file_is_private_from_the_first_moment(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = opened(str(tmp_path / "new" / "ledger.sqlite"))
        ledger.claim(UUID)
        ledger.close()
    finally:
        os.umask(before)
    folder = tmp_path / "new"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_sqlite_ledger_needs_no_sqlalchemy_and_a_time_comes_back_as_it_was(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.sqlite")
    opened(path).close()
    code = (
        "import sys; from agent.provisioning.ledger import open_ledger;"
        f"l = open_ledger({path!r}, 'one'); l.claim('u'); l.begin('u', 'key'); l.close();"
        "sys.exit('sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    ledger = opened(path)
    ledger.claim(UUID)
    record = ledger.board(UUID)
    assert record is not None
    assert record.updated_at == NOW
    ledger.close()
