"""Folders that are deleted in the end, and those of processes that had no end of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.files.temporary_folder import temporary_folder

HOLDER = """
import sys
from agent.files.temporary_folder import temporary_folder
with temporary_folder("cellagent-test") as folder:
    (folder / "key").write_text("TEST ONLY")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_a_folder_of_a_killed_process_goes_with_the_next_start_and_one_in_use_stays(
    temporary: Path,
) -> None:
    unlocked = temporary / "cellagent-test-of-another-making"
    unlocked.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        with temporary_folder("cellagent-test") as ours:
            assert {*temporary.iterdir()} == {unlocked, held, ours}
            assert ours.stat().st_mode & 0o777 == 0o700
        holder.kill()
    assert {*temporary.iterdir()} == {unlocked, held}
    with temporary_folder("cellagent-test") as ours:
        assert {*temporary.iterdir()} == {unlocked, ours}
    assert [*temporary.iterdir()] == [unlocked]


def test_a_folder_whose_lock_is_just_being_made_stays(temporary: Path) -> None:
    """The lock is a file before it is locked, and has its holder's number from then on."""
    begun = temporary / "cellagent-test-of-one-that-starts"
    begun.mkdir()
    (begun / "lock").touch()
    with temporary_folder("cellagent-test"):
        assert begun.is_dir()


def test_an_end_that_another_start_meets_is_no_failure(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one makes the lock anew, to delete the folder, too."""
    remove = os.rmdir

    def met(path: str, **options: int) -> None:
        (temporary / Path(path).name / "lock").touch()
        remove(path, **options)

    with temporary_folder("cellagent-test") as ours:
        monkeypatch.setattr(os, "rmdir", met)
    assert [*ours.iterdir()] == [ours / "lock"]


@pytest.mark.skipif(sys.platform == "win32", reason="owners are POSIX's")
def test_a_folder_that_another_user_left_stays(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = temporary / "cellagent-test-of-another-user"
    left.mkdir()
    (left / "lock").write_text("\n4194304\n")
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    with temporary_folder("cellagent-test"):
        assert left.is_dir()
