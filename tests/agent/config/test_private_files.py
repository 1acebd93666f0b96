from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import cellagent

from agent.config.private_files import FolderUnusable, make_private_folder, write_private


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder that cannot be made: a file stands in its way."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "state"
    monkeypatch.setenv("CELLAGENT_STATE_DIR", str(folder))
    return folder


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_every_folder_that_is_made_is_its_owners_alone(tmp_path: Path):
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")} == {0o700}


def test_a_folder_that_cannot_be_made_is_named_with_what_to_set(state: Path):
    with pytest.raises(FolderUnusable, match=f"cannot make the folder {state}") as raised:
        write_private(state / "outbox" / "x", b"")
    assert "CELLAGENT_STATE_DIR" in raised.value.hint


def test_a_folder_that_somebody_named_is_not_put_down_to_the_state_folder(tmp_path: Path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "labels"):
        with pytest.raises(FolderUnusable) as raised:
            make_private_folder(folder)
        assert "CELLAGENT_STATE_DIR" not in raised.value.hint


def test_a_folder_that_may_not_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, in CI, may write anywhere
    with pytest.raises(FolderUnusable, match="may not write"):
        make_private_folder(tmp_path)


@pytest.mark.parametrize(
    "words", [("outbox", "list"), ("status",), ("provision", "status"), ("reload",)], ids=" ".join
)
async def test_commands_that_keep_something_say_so(state: Path, words: tuple[str, ...]):
    done = await cellagent(*words, "--json")
    assert done.code == 1
    error = json.loads(done.out)["error"]
    assert error["kind"] == "folder-unusable"
    assert str(state) in error["message"]
    assert "CELLAGENT_STATE_DIR" in error["try"]


async def test_an_outbox_that_never_held_anything_says_no_more_than_that():
    done = await cellagent("outbox", "list")
    assert done.out == "0 waiting, 0 parked, 0 bytes\n"
