"""Files that only their owner may read: 0600 from the moment they exist, refused otherwise.

Files and folders that other users could change are refused as well (`trusted_places`).

The one place where the agent creates such files and their folders. By themselves are the virtual
modem's state (`at.virtual.state`), recordings (`at.transcripts.recorder`) and locks of processes
(`at.ports.process_lock`), since `at` imports nothing of the agent, and the stand-in's files.
"""

import errno
import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from agent.errors import AgentError, ConfigError, RefusedByRule
from agent.files.paths import config_file, state_dir
from agent.files.trusted_places import (
    UntrustedPlace,
    real_path,
    require_trusted_file,
    require_trusted_folder,
    require_trusted_way,
)

MAX_BYTES = 1024 * 1024
"""No configuration, secrets or key file is larger."""
_PATIENCE_S = 5.0  # for the change of a small file
_NO_FILE = frozenset({errno.ENOENT, errno.EISDIR, errno.ENOTDIR})
_OF_A_PATH = _NO_FILE | {errno.EACCES, errno.EPERM, errno.ELOOP}
_ANOTHER = "name a folder that can be written"


class FolderUnusable(AgentError):
    """A folder cannot be created, or not be written to.

    `mend` is what makes it usable, "" where that is not known.
    """

    kind = "folder-unusable"

    def __init__(self, what: str, folder: Path) -> None:
        within = (folder, *folder.parents)
        first = next((one for one in within if os.access(one, os.F_OK)), within[-1])
        self.mend = ""
        if _is_read_only(first):
            self.mend = _read_only_hint(first)
        elif _is_closed_by_its_owner(first):
            self.mend = f"`{shlex.join(['chmod', 'u+rwx', str(first)])}`"
        state = "`export CELLAGENT_STATE_DIR=FOLDER` names one that can be written"
        if "CELLAGENT_STATE_DIR" in os.environ:
            state += "; `unset CELLAGENT_STATE_DIR` returns to the usual one"
        config = "`export CELLAGENT_CONFIG=FILE` names another, in a folder that can be written"
        own = {config_file().parent: config, state_dir(): state}
        another = next((own[one] for one in within if one in own), _ANOTHER)
        super().__init__(what, hint="; or ".join(filter(None, [self.mend, another])))


def _is_closed_by_its_owner(folder: Path) -> bool:
    if sys.platform == "win32" or not folder.is_dir() or _writable(folder):
        return False
    return folder.stat().st_uid == os.getuid()


def _is_read_only(folder: Path) -> bool:
    """Return whether nobody may write there, as on a disk that failed."""
    return sys.platform != "win32" and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def disk_hint(error: BaseException | None, folder: Path | None = None) -> str:
    """Return what helps where a disk took no file, in `folder`; "" where the disk is not why."""
    if not isinstance(error, OSError):
        return ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "free some space on that disk: `df -h` and `df -i` show what it has no more of"
    if error.errno == errno.EFBIG:
        return "`ulimit -f unlimited` lifts a limit on files; of a service LimitFSIZE= is one"
    if error.errno == errno.EROFS and (folder or error.filename):
        return _read_only_hint(folder or Path(os.fsdecode(error.filename)))
    return ""


def path_hint(error: OSError) -> str:
    """Return a command that shows why a path was not opened; "" where the path is not why."""
    if error.filename is None or error.errno not in _OF_A_PATH:
        return ""
    path = Path(os.fsdecode(error.filename))
    if error.errno in _NO_FILE:
        folder = next((each for each in (path, *path.parents) if each.is_dir()), path.parent)
        return f"`ls {shlex.quote(str(folder))}` shows what is there"
    shows = "whose it is and what this user may do there"
    if error.errno == errno.ELOOP:
        shows = "the link: it leads back to itself"
    else:  # of what is in a folder that this user may not enter, `ls` shows nothing
        path = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    return f"`ls -ld {shlex.quote(str(path))}` shows {shows}"


def _read_only_hint(path: Path) -> str:
    there = next(one for one in (path, *path.parents) if os.access(one, os.F_OK))
    return f"`{shlex.join(['findmnt', '-T', str(there)])}` shows it: mount it to be written"


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def private_opener(path: str | Path, flags: int) -> int:
    """Open a file, made 0600 if it is new: `open(path, "xb", opener=private_opener)`.

    Any mode of `open` will do: "xb" for a file that must not exist, "ab" to append. Returns the
    descriptor. Raises OSError.
    """
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


@contextmanager
def new_private(path: Path) -> Iterator[BinaryIO]:
    """Give a new file to write, 0600, which goes again where the block fails.

    Raises RefusedByRule where `path` is there, OSError.
    """
    try:
        file = open(path, "xb", opener=private_opener)  # noqa: SIM115 - closed below
    except FileExistsError as error:
        raise RefusedByRule(
            f"{path} exists already", hint="nothing is overwritten: name another file"
        ) from error
    try:
        with file:
            yield file
    except BaseException:
        path.unlink()
        raise


def touch_private(path: Path) -> None:
    """Make an empty file, 0600, unless it exists.

    Raises OSError if it cannot be written to, UntrustedPlace if others could write to it.
    """
    descriptor = private_opener(path, os.O_RDWR | os.O_CREAT)
    try:
        require_trusted_file(path, os.fstat(descriptor))
    finally:
        os.close(descriptor)


def write_private(path: Path, content: bytes, *, unfinished: Path | None = None) -> None:
    """Replace `path` by a 0600 file of this content, as `replacing` does, in folders made 0700.

    Raises OSError, FolderUnusable, UntrustedPlace.
    """
    require_trusted_way(path)
    make_folder(real_path(path).parent)
    with replacing(path, private=True, unfinished=unfinished) as file:
        file.write(content)


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Let one process after the other read a file and replace it: else what one wrote is lost.

    Where another is at it for seconds, or the file system knows no locks, it goes on all the same.
    Makes the folder. Raises as `write_private`.
    """
    from at.ports.process_lock import HeldByAnother, ProcessLock

    require_trusted_way(path)
    make_folder(real_path(path).parent)
    lock, until = None, time.monotonic() + _PATIENCE_S
    while lock is None and time.monotonic() < until:
        try:
            lock = ProcessLock(path.with_name(f".{path.name}.lock"))
        except HeldByAnother:
            time.sleep(0.01)
        except OSError as error:
            error.filename = str(path)  # the name that a person knows
            raise
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextmanager
def replacing(
    path: Path, *, private: bool, follow: bool = True, unfinished: Path | None = None
) -> Iterator[BinaryIO]:
    """Give a file to write, which takes the place of `path` when the block ends, synced.

    After an error `path` is as it was, and nothing else is left; only a disk that fails to sync the
    folder is told after the file has its name. `follow`: a link stays, and the file that it points
    to is replaced; without it the link itself is. `private` makes the file 0600. `unfinished` is
    the name until the content is whole. By default it is unique, since several processes may write;
    a file's only writer may name one, so that a kill leaves one such file at most. Raises OSError.
    """
    target = real_path(path) if follow else path.absolute()
    mode: Literal["wb", "xb"] = "wb" if unfinished else "xb"
    unique = f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}"
    unfinished = unfinished or target.with_name(unique)
    try:
        with open(unfinished, mode, opener=private_opener if private else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        ours = {None, unfinished, str(unfinished)}
        if isinstance(error, OSError) and error.errno is not None and error.filename in ours:
            error.filename = str(path)  # the name that a person knows
        raise
    try:
        sync_folder(target.parent)
    except OSError as error:
        # The file has its name. Some file systems sync no folder, and one that may be written to
        # need not be readable: that is no reason to tell that the file was not kept.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}:
            raise


@contextmanager
def output_file(path: Path, *, private: bool, follow: bool = True) -> Iterator[BinaryIO]:
    """Give the file that a person named for an output: the pipe or device there, else `replacing`.

    Raises OSError.
    """
    # /dev/stdout is a link: what it leads to is meant, even where that is a file. /dev/shm holds no
    # devices, but files in memory, in a folder that is open to everybody.
    parts = path.absolute().parts
    is_device = parts[1:2] == ("dev",) and parts[2:3] != ("shm",)
    if not is_device and (path.is_file() or not path.exists()):
        with replacing(path, private=private, follow=follow) as file:
            yield file
        return
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        error.filename = error.filename or str(path)  # that of a full disk does not name it
        raise


def sync_folder(folder: Path) -> None:
    """Sync a folder: files created, renamed or removed in it stay so after a crash."""
    if sys.platform == "win32":
        return  # a folder cannot be opened there, and its entries are journaled
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Create `folder` for state, as `make_folder` does. Raises FolderUnusable, UntrustedPlace."""
    require_trusted_folder(folder)
    make_folder(folder)


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents, each 0700 whatever the umask is.

    One that is there may be a folder that others use, too. Raises FolderUnusable, also for a
    folder that exists and may not be written to.
    """
    missing = folder
    try:
        for missing in reversed((folder, *folder.parents)):
            if not missing.exists():
                missing.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        what = f"cannot make the folder {missing}: {error.strerror}"
        raise FolderUnusable(what, folder) from error
    if not folder.is_dir():
        raise FolderUnusable(f"{folder} is no folder", folder)
    if not _writable(folder):
        if _is_read_only(folder):
            raise FolderUnusable(f"the file system of {folder} is read-only", folder)
        raise FolderUnusable(f"this user may not write to the folder {folder}", folder)


def read_private(path: Path, what: str) -> str:
    """Return the text of a UTF-8 file that only its owner may read; raises as `read_plain`."""
    try:
        return read_plain(path, what, private=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what}: {path} is not UTF-8 text") from error


def read_plain(path: Path, what: str, *, private: bool = False) -> bytes:
    """Return the bytes of a file that an operator named; `what` says what it should hold.

    Raises ConfigError if it is missing, not a plain file or too large, or if others could change
    it; with `private` also if others may read it: a secret that they could have is not used.
    """
    # A pipe that nobody writes to would block for ever; Windows would change line ends.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        reason = f"{what}: cannot read {path} ({error.strerror})"
        raise ConfigError(reason, hint=path_hint(error)) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ConfigError(f"{what}: {path} is no plain file", hint="name a file, no folder or pipe")
    with os.fdopen(descriptor, "rb") as file:
        if private:
            _require_private(path, what, status)
        require_trusted_config(path, what, status)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{what}: {path} is larger than {MAX_BYTES} bytes")
    return content


def _require_private(path: Path, what: str, status: os.stat_result) -> None:
    if sys.platform != "win32" and status.st_mode & 0o077:
        mend = f"chmod 600 {shlex.quote(str(path))}"
        raise ConfigError(
            f"{what}: others can read {path} (mode {stat.S_IMODE(status.st_mode):04o})",
            hint=f"`{mend}`; and change the secret if others may have seen it",
        )


def require_trusted_config(path: Path, what: str, status: os.stat_result) -> None:
    """Check a file that tells what to do or to trust; `status` is that of the opened file.

    Raises ConfigError where other users could change it.
    """
    try:
        require_trusted_file(path, status)
    except UntrustedPlace as error:
        raise ConfigError(f"{what}: {error}", hint=error.hint) from error
