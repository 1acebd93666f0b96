from __future__ import annotations

import errno
import json
import os
import stat
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from agent.cli.framework.hints import usual_hint
from agent.errors import AgentError, ConfigError
from agent.files.private_files import (
    MAX_BYTES,
    FolderUnusable,
    make_folder,
    make_private_folder,
    new_private,
    output_file,
    private_opener,
    read_plain,
    replacing,
    touch_private,
    write_private,
)
from tests.support.commands.command_line import cellagent


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


def test_a_folder_below_one_that_may_not_be_looked_into_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def hidden(path: Path) -> bool:
        if path.parent == tmp_path / "hidden":
            raise PermissionError(13, "Permission denied", str(path))
        return path in (tmp_path / "hidden", tmp_path, *tmp_path.parents)

    monkeypatch.setattr(Path, "exists", hidden)  # root, in CI, may look anywhere
    with pytest.raises(FolderUnusable, match=f"cannot make the folder {tmp_path / 'hidden'}"):
        make_private_folder(tmp_path / "hidden" / "state")


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


@pytest.mark.skipif(sys.platform == "win32", reason="reads statvfs")
@pytest.mark.parametrize(
    ("variable", "path", "another"),
    [
        (
            "CELLAGENT_STATE_DIR",
            "",
            (
                "`export CELLAGENT_STATE_DIR=FOLDER` names one that can be written; "
                "`unset CELLAGENT_STATE_DIR` returns to the usual one"
            ),
        ),
        (
            "CELLAGENT_CONFIG",
            "config.toml",
            "`export CELLAGENT_CONFIG=FILE` names another, in a folder that can be written",
        ),
        ("TMPDIR", "", "name a folder that can be written"),
    ],
)
def test_a_disk_that_became_read_only_is_not_put_down_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, path: str, another: str
):
    monkeypatch.setenv(variable, str(tmp_path / path))
    monkeypatch.setattr(os, "access", lambda _path, mode: mode == os.F_OK)
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(FolderUnusable, match=f"the file system of {tmp_path} is read") as raised:
        make_folder(tmp_path)
    mended = f"`findmnt -T {tmp_path}` shows it: mount it to be written"
    assert raised.value.hint == f"{mended}; or {another}"


@pytest.mark.parametrize(
    ("number", "shows"),
    [
        (errno.EROFS, "`findmnt -T FOLDER` shows it: mount it to be written"),
        (errno.ENOSPC, "free some space on that disk: `df -h` and `df -i` show"),
        (errno.EFBIG, "`ulimit -f unlimited` lifts a limit on files"),
        (errno.EIO, ""),
    ],
)
def test_what_a_disk_lacks_can_be_looked_at(tmp_path: Path, number: int, shows: str):
    lost = OSError(number, os.strerror(number), str(tmp_path / "gone" / "state"))
    expected = shows.replace("FOLDER", str(tmp_path))
    assert usual_hint(lost).startswith(expected)
    assert bool(usual_hint(lost)) is bool(shows)
    wrapped = AgentError("it was not kept")
    wrapped.__cause__ = lost
    assert usual_hint(wrapped) == usual_hint(lost)


@pytest.mark.skipif(sys.platform == "win32", reason="links are POSIX's")
def test_a_path_that_leads_to_no_file_can_be_looked_at(tmp_path: Path):
    (loop := tmp_path / "loop").symlink_to(loop)
    (tmp_path / "file").touch()
    for path, shows in (
        (loop, f"`ls -ld {loop}` shows the link: it leads back to itself"),
        (tmp_path / "file" / "below", f"`ls {tmp_path}` shows what is there"),
        (tmp_path, f"`ls {tmp_path}` shows what is there"),
    ):
        with pytest.raises(OSError) as raised:
            path.open()
        assert usual_hint(raised.value).startswith(shows)


async def test_a_command_that_keeps_something_says_so(state: Path):
    done = await cellagent("outbox", "list", "--json")
    assert done.code == 1
    error = json.loads(done.out)["error"]
    assert error["kind"] == "folder-unusable"
    assert str(state) in error["message"]
    assert "CELLAGENT_STATE_DIR" in error["try"]


async def test_an_outbox_that_never_held_anything_says_no_more_than_that():
    done = await cellagent("outbox", "list")
    assert done.out == "0 waiting, 0 parked, 0 bytes\n"


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_file_is_private_however_it_is_made(tmp_path: Path):
    before = os.umask(0)
    try:
        write_private(tmp_path / "whole", b"1")
        write_private(tmp_path / "by-one", b"1", unfinished=tmp_path / "by-one.new")
        touch_private(tmp_path / "empty")
        for mode in ("xb", "ab"):
            with open(tmp_path / mode, mode, opener=private_opener) as file:
                file.write(b"1")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("whole", "by-one", "empty", "xb", "ab"), 0o600)


def test_what_a_killed_writer_left_under_a_fixed_name_is_written_over(tmp_path: Path):
    unfinished = tmp_path / "state.new"
    unfinished.write_bytes(b"half of what was longer")
    write_private(tmp_path / "state", b"whole", unfinished=unfinished)
    assert (tmp_path / "state").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_write_that_fails_leaves_the_file_as_it_was_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_private(tmp_path / "state", b"before")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(tmp_path / "state", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert (tmp_path / "state").read_bytes() == b"before"


def test_a_file_that_cannot_take_its_name_is_told_by_the_name_that_was_meant(tmp_path: Path):
    (tmp_path / "state").mkdir()
    with pytest.raises(OSError) as failed, replacing(tmp_path / "state", private=True) as file:
        file.write(b"content")
    assert failed.value.filename == str(tmp_path / "state")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_new_file_is_gone_again_where_it_could_not_be_filled(tmp_path: Path):
    def fill() -> None:
        with new_private(tmp_path / "new") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert not list(tmp_path.iterdir())


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path):
    (tmp_path / "elsewhere").write_bytes(b"before")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    write_private(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere").read_bytes() == b"after"


def test_touching_a_file_keeps_its_content(tmp_path: Path):
    (tmp_path / "data").write_bytes(b"kept")
    touch_private(tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == b"kept"


@pytest.mark.skipif(os.name != "posix", reason="Windows journals the entries of a folder")
def test_the_folder_is_synced_once_the_whole_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[list[str]] = []

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            synced.append([path.name for path in tmp_path.iterdir()])

    monkeypatch.setattr(os, "fsync", sync)
    write_private(tmp_path / "state", b"whole")
    assert synced == [["state"]]


@pytest.mark.skipif(os.name != "posix", reason="Windows journals the entries of a folder")
@pytest.mark.parametrize(("number", "told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_that_cannot_be_synced_is_no_failure_but_a_broken_disk_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: bool
):
    def refused(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match=os.strerror(number)) if told else nullcontext():
        write_private(tmp_path / "state", b"whole")
    assert (tmp_path / "state").read_bytes() == b"whole"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are POSIX's")
def test_a_pipe_or_device_that_is_named_for_an_output_stays_what_it_is(tmp_path: Path):
    """Of root, `--out /dev/null` left a file there, for every program of the system."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with output_file(pipe, private=False) as file:
        file.write(b"all of it")
    assert os.read(reader, 100) == b"all of it"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm here: it is Linux's")
def test_a_file_in_the_memory_that_all_users_share_is_as_private_as_any():
    with TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder, "core.bin")
        with output_file(path, private=True) as file:
            file.write(b"secret")
        assert path.stat().st_mode & 0o777 == 0o600


def test_an_output_that_fails_leaves_the_file_of_before_or_none(tmp_path: Path):
    (tmp_path / "there").write_bytes(b"before")

    def fail(path: Path) -> None:
        with output_file(path, private=False) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    for name in ("there", "new"):
        with pytest.raises(KeyboardInterrupt):
            fail(tmp_path / name)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"there": b"before"}


def test_a_file_is_read_whole_or_refused(tmp_path: Path):
    path = tmp_path / "key.pem"
    path.write_bytes(bytes(MAX_BYTES))
    assert len(read_plain(path, "a key")) == MAX_BYTES
    path.write_bytes(bytes(MAX_BYTES + 1))
    with pytest.raises(ConfigError, match=r"key\.pem is larger than"):
        read_plain(path, "a key")
