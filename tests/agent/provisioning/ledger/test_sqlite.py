"""A ledger in a file: private, written by one bench, read by others."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.files.private_files import FolderUnusable
from agent.provisioning.ledger import Ledger, LedgerError, LedgerHeld, backend, open_ledger
from agent.provisioning.ledger.backend import DatabaseFailed
from agent.provisioning.ledger.sqlite import SqliteDatabase
from tests.support.provisioning.ledgers import NOW, OTHER, UUID, boards_of, opened, run_of


def test_a_second_bench_on_the_same_file_is_told_so_and_reading_is_not_kept_waiting(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.sqlite")
    first = opened(path)
    first.claim(run_of())
    with pytest.raises(
        LedgerHeld, match=rf"another bench on this host .*\(PID {os.getpid()}\)"
    ) as held:
        opened(path)
    assert "another ledger" not in held.value.hint, "it knows no key, so none would be asked for"
    assert "postgresql://" in held.value.hint
    reader = open_ledger(path, "reader", writes=False)
    assert [record.uuid for record in boards_of(reader)] == [UUID]
    reader.close()
    first.close()
    opened(path).close()


def test_a_ledger_that_may_only_be_read_is_read_and_nothing_about_it_changes(
    tmp_path: Path,
) -> None:
    """A backup, or a disk that its system has made read-only."""
    path = tmp_path / "backup" / "ledger.sqlite"
    ledger = opened(str(path))
    ledger.claim(run_of())
    ledger.close()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    before = path.stat()
    reader = open_ledger(str(path), "reader", writes=False)
    assert [record.uuid for record in boards_of(reader)] == [UUID]
    reader.close()
    assert (path.stat().st_mtime_ns, path.stat().st_mode) == (before.st_mtime_ns, before.st_mode)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o500
    path.parent.chmod(0o700)


def test_nobody_else_changes_the_tables_while_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`provision status` and `provision run` may both come first to a new ledger."""
    path = tmp_path / "ledger.sqlite"
    refusals = []

    def upgrade_watched(tables: backend.Tables, found: str | None, wanted: str | None) -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                refusals.append(str(error))
        upgrade(tables, found, wanted)

    upgrade = backend.upgrade
    monkeypatch.setattr(backend, "upgrade", upgrade_watched)
    opened(str(path)).close()
    assert refusals == ["database is locked"]


def test_tables_that_were_made_by_half_are_gone_and_are_made_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.sqlite"

    def upgrade_and_end(tables: backend.Tables, found: str | None, wanted: str | None) -> None:
        upgrade(tables, found, wanted)
        raise KeyboardInterrupt

    upgrade = backend.upgrade
    monkeypatch.setattr(backend, "upgrade", upgrade_and_end)
    with pytest.raises(KeyboardInterrupt):
        opened(str(path))
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT name FROM sqlite_master").fetchall() == []
    ledger = opened(str(path))
    ledger.claim(run_of())
    ledger.close()


def test_the_file_is_private_from_the_first_moment(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = opened(str(tmp_path / "new" / "ledger.sqlite"))
        ledger.claim(run_of())
        ledger.close()
    finally:
        os.umask(before)
    folder = tmp_path / "new"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_sqlite_ledger_needs_no_driver_of_a_server_and_a_time_comes_back_as_it_was(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "ledger.sqlite")
    opened(path).close()
    code = (
        "import sys; from datetime import UTC, datetime;"
        "from agent.provisioning.ledger import RunRecord, open_ledger;"
        "run = RunRecord(id='r', uuid='u', began_at=datetime.now(UTC));"
        f"l = open_ledger({path!r}, 'one'); l.claim(run); l.begin('u', 'key'); l.close();"
        "sys.exit('psycopg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    ledger = opened(path)
    ledger.claim(run_of())
    record = ledger.board(UUID)
    assert record is not None
    assert record.updated_at == NOW
    ledger.close()


def test_a_reader_that_holds_the_file_open_is_waited_for_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a database browser does, for as long as its window is open: no board fails for that."""
    path = tmp_path / "ledger.sqlite"
    ledger = opened(str(path))
    ledger.claim(run_of())
    waits: list[str] = []
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM boards").fetchall()

    class Patient(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append("wait")
            if len(waits) == 3:
                reader.execute("COMMIT")  # the window is closed
            return False

    monkeypatch.setattr(ledger._database, "_aborted", Patient())
    assert ledger.board(UUID), "who reads as well waits for no reader"
    assert not waits
    ledger.begin(UUID, "key")
    assert [note.step for note in ledger.steps(UUID)] == ["key"]
    assert len(waits) == 3
    assert caplog.text.count("another program reads or writes") == 1
    reader.close()
    ledger.close()


def test_a_wait_for_a_reader_can_be_aborted_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = opened(str(path))
    ledger.claim(run_of())
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
        ThreadPoolExecutor(1) as one,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM boards").fetchall()
        waiting = one.submit(ledger.begin, UUID, "key")
        while not waiting.done():
            ledger.abort()
        with pytest.raises(DatabaseFailed, match="locked") as locked:
            waiting.result()
    assert f"`fuser {path}` names it" in locked.value.hint
    assert not ledger.steps(UUID)
    ledger.begin(UUID, "key")
    ledger.close()


def test_a_wait_that_was_aborted_is_not_begun_again_for_each_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = opened(str(path))
    ledger.claim(run_of())
    ledger.claim(run_of(OTHER))
    waits: list[str] = []

    class Aborted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append("wait")
            return True

    monkeypatch.setattr(ledger._database, "_aborted", Aborted())
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM boards").fetchall()
        notes = [partial(Ledger.begin, uuid=uuid, step="key") for uuid in (UUID, OTHER)]
        assert [type(one) for one in ledger.together(notes)] == [DatabaseFailed, DatabaseFailed]
    assert len(waits) == 1
    ledger.close()


def test_a_file_that_another_program_writes_is_waited_for_too(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    ledger = opened(str(path))
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as writer,
        ThreadPoolExecutor(1) as one,
    ):
        writer.execute("BEGIN EXCLUSIVE")
        waiting = one.submit(ledger.claim, run_of())
        writer.execute("COMMIT")
        assert waiting.result(30)().record.uuid == UUID
    ledger.close()


DAMAGES = ["its end is gone", "its middle is other bytes", "another file", "a table is gone"]


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open is not moved there")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_ledger_that_was_moved_while_it_was_written_is_to_be_put_back(
    tmp_path: Path, replaced: bool
) -> None:
    """Nothing is written into a file that nobody will find again."""
    path, kept = tmp_path / "ledger.sqlite", tmp_path / "kept.sqlite"
    ledger = opened(str(path))
    ledger.claim(run_of())
    path.rename(kept)
    if replaced:
        shutil.copy(kept, path)
    with pytest.raises(DatabaseFailed) as failed:
        ledger.begin(UUID, "key")
    assert f"{path} was moved, deleted or replaced" in failed.value.hint
    kept.rename(path)
    ledger.begin(UUID, "key")
    assert [note.step for note in ledger.steps(UUID)] == ["key"]
    ledger.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_ledger_is_to_be_put_back_and_neither_run_again_nor_begun_anew(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as editor, editor:
        editor.execute("DROP TABLE keys")
    middle = len(whole) // 3
    path.write_bytes({
        "its end is gone": whole[:middle],
        "its middle is other bytes": whole[:middle] + b"x" * middle + whole[2 * middle :],
        "another file": b"boards of last week" * 300,
        "a table is gone": path.read_bytes(),
    }[damage])  # fmt: skip

    def use() -> None:
        with closing(opened(str(path))) as ledger:
            ledger.claim(run_of())
            boards_of(ledger)

    with pytest.raises((LedgerError, DatabaseFailed)) as failed:
        use()
    assert f"{path} is damaged: keep a copy" in (failed.value.hint or "")
    assert "the same command again" not in (failed.value.hint or "")


def test_a_time_that_was_edited_by_hand_is_read_as_utc_or_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(opened(str(path))) as ledger:
        ledger.claim(run_of())
        with closing(sqlite3.connect(path)) as editor, editor:
            editor.execute("UPDATE boards SET updated_at = '2026-03-31 06:00:00'")
        assert boards_of(ledger)[0].updated_at == datetime(2026, 3, 31, 6, tzinfo=UTC)
        with closing(sqlite3.connect(path)) as editor, editor:
            editor.execute("UPDATE boards SET updated_at = '31.03.2026 06:00'")
        with pytest.raises(DatabaseFailed, match="stands where a time") as failed:
            boards_of(ledger)
    assert f"{path} is damaged: keep a copy" in (failed.value.hint or "")


@pytest.mark.skipif(os.name != "posix", reason="modes and mounts are POSIX's")
@pytest.mark.parametrize(
    ("read_only", "owner", "mends"),
    [
        (True, 0, "`findmnt -T FOLDER` shows it: mount it to be written; an empty one knows no"),
        (False, 0, "`chmod u+rwx FOLDER`; an empty one knows no key"),
        (False, 1, "`ls -ld FOLDER` shows whose it is: make it writable again; an empty one"),
    ],
)
def test_a_ledger_that_cannot_be_written_is_not_to_be_begun_anew_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool, owner: int, mends: str
) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    # root, in CI, may write anywhere
    monkeypatch.setattr(os, "access", lambda _path, mode: mode == os.F_OK)
    flags = os.ST_RDONLY if read_only else 0
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=flags))
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + owner)
    with pytest.raises(FolderUnusable) as refused:
        opened(str(path))
    assert refused.value.hint is not None
    assert refused.value.hint.startswith(mends.replace("FOLDER", str(tmp_path)))
    assert "CELLAGENT_STATE_DIR" not in refused.value.hint


def test_a_full_disk_is_told_with_the_command_that_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(opened(str(path))) as ledger:
        ledger.claim(run_of())
        database = ledger._database
        assert isinstance(database, SqliteDatabase)
        # No more pages than there are: what SQLite says is what it says of a full disk.
        database._connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(DatabaseFailed, match="disk is full") as full:
            ledger.begin(UUID, "key", "10 " + "x" * 100_000)
    assert f"`df -h {tmp_path}` shows how much is left" in (full.value.hint or "")
    assert "what was done so far is kept" in (full.value.hint or "")
