"""Whether other users of this host could change a file or folder that the agent relies on.

A place is trusted where this user or the system owns it, and nobody else may write to it or could
put another in its place. The system is whoever owns "/": root, or in a container its stand-in.
"""

import logging
import os
import shlex
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from agent.errors import RefusedByRule
from agent.files.paths import state_dir

_SYSTEM = Path("/").stat().st_uid
_GROUP, _OTHERS = 0o020, 0o002
_ACL = "system.posix_acl_access"
_log = logging.getLogger(__name__)


class UntrustedPlace(RefusedByRule):
    """Other users could change this file or folder, or it is another user's."""

    kind = "untrusted-place"


def real_path(path: Path) -> Path:
    """Return where a path leads; one in a loop of links is itself: what opens it says so."""
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError before Python 3.13


def require_trusted_folder(folder: Path) -> None:
    """Check a folder with state in it, and what leads there. Raises UntrustedPlace.

    A sticky folder, such as /tmp, may lead there: others cannot replace what is ours in it.
    """
    own = {real_path(folder), real_path(state_dir())}
    _require_trusted(_Place(place, leads=place not in own) for place in _way_to(folder))


def require_trusted_way(path: Path) -> None:
    """Check the folders that lead to a file which need not exist. Raises UntrustedPlace."""
    _require_trusted(_Place(place, leads=True) for place in _way_to(path.parent))


def require_trusted_file(path: Path, status: os.stat_result) -> None:
    """Check a file, and what leads there; `status` is the opened file's. Raises UntrustedPlace."""
    if stat.S_ISREG(status.st_mode):  # a pipe is of the process that made it
        way = [_Place(place, leads=True) for place in _way_to(path.parent)]
        _require_trusted([_Place(path, leads=False, status=status), *way])


def _way_to(folder: Path) -> list[Path]:
    """Return the folder and its parents, by links and without them, the nearest first."""
    shown, real = folder.absolute(), real_path(folder)
    return list(dict.fromkeys([real, *real.parents, shown, *shown.parents]))


class _Place:
    """A file or folder; `leads` where it only leads to what is used."""

    def __init__(self, path: Path, *, leads: bool, status: os.stat_result | None = None) -> None:
        self.path, self.leads, self._opened = path, leads, status

    @cached_property
    def status(self) -> os.stat_result | None:
        """Its status; None where it is not there yet, or hidden: what uses it says so."""
        if self._opened is None:
            with suppress(OSError):
                return self.path.lstat()
        return self._opened

    def is_open(self) -> bool:
        """Return whether others may write to it, as far as that harms; warn of one's own group."""
        status = self.status
        if status is None or stat.S_ISLNK(status.st_mode):
            return False
        if not status.st_mode & (_GROUP | _OTHERS) or (self.leads and self.is_sticky):
            return False
        if status.st_mode & _OTHERS or not _is_private(self.path, status):
            return True
        if not self.leads:
            _warn(f"the group of this user may change {self.path}: `{_closing(self)}` ends that")
        return False

    @property
    def is_sticky(self) -> bool:
        """Whether only the owner of what is in it may rename or remove that."""
        return self.status is not None and bool(self.status.st_mode & stat.S_ISVTX)

    @property
    def may_be_closed(self) -> bool:
        """Whether closing it is good advice: /tmp must stay open, and root's is not ours."""
        if sys.platform == "win32" or self.status is None or self.is_sticky:
            return False
        return self.status.st_uid == os.geteuid()


def _require_trusted(places: Iterable[_Place]) -> None:
    if sys.platform == "win32":
        return
    places = list(places)
    for place in places:
        if place.status is not None and place.status.st_uid not in {os.geteuid(), _SYSTEM}:
            raise _of_another_user(place, _user(place.status.st_uid))
    open_places = [place for place in places if place.is_open()]
    if not open_places:
        return
    first = open_places[0].path
    hint = _elsewhere(first)
    if all(place.may_be_closed for place in open_places):
        hint = f"look at what is in it, then `{_closing(*open_places)}`, or {hint}"
    raise UntrustedPlace(
        f"other users of this host may change {first}, and with it what is done and sent where",
        hint=hint,
    )


def _of_another_user(place: _Place, owner: str) -> UntrustedPlace:
    mend = f"run this as {owner}"
    if (
        sys.platform != "win32" and os.geteuid() and not place.leads
    ):  # root would be told to take what is somebody else's
        take = f'`sudo chown -R "$(id -un)" {shlex.quote(str(place.path))}`'
        mend += f", or, if nothing of that user needs it, {take}"
    return UntrustedPlace(
        f"{place.path} belongs to another user ({owner})",
        hint=f"{mend}, or {_elsewhere(place.path)}",
    )


def _closing(*places: _Place) -> str:
    return shlex.join(["chmod", "go-w", *(str(place.path) for place in places)])


def _elsewhere(place: Path) -> str:
    if place in (state := real_path(state_dir()), *state.parents):
        return "`export CELLAGENT_STATE_DIR=FOLDER` names one that only you may change"
    return "use a folder that only you may change"


def _is_private(place: Path, status: os.stat_result) -> bool:
    """Return whether only this user is in the group that may write, as where the umask is 002."""
    if sys.platform == "win32":
        return False
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(status.st_gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    others = {
        *group.gr_mem,
        *(each.pw_name for each in pwd.getpwall() if each.pw_gid == group.gr_gid),
    }
    own = group.gr_name == user.pw_name and group.gr_gid == user.pw_gid
    return own and others <= {user.pw_name} and not _has_acl(place)


def _has_acl(place: Path) -> bool:
    """Return whether an access list names more users: the mode shows only what they may at most."""
    try:
        return sys.platform == "linux" and _ACL in os.listxattr(place)
    except OSError:
        return False


def _user(number: int) -> str:
    if sys.platform == "win32":
        return f"number {number}"
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


@cache
def _warn(text: str) -> None:
    _log.warning("%s", text)  # once, however often the place is used
