"""Whether other users of this host could change a file or folder that the agent relies on.

A place is trusted where this user or the system owns it, and nobody else may write to it or could
put another in its place. The system is whoever owns "/": root, or in a container its stand-in.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from functools import cache
from pathlib import Path

from agent.config.paths import state_dir
from agent.errors import RefusedByRule

_POSIX = os.name == "posix"
_SYSTEM = Path("/").stat().st_uid
_GROUP, _OTHERS = 0o020, 0o002
_ACL = "system.posix_acl_access"
_log = logging.getLogger(__name__)


class UntrustedPlace(RefusedByRule):
    """Other users could change this file or folder, or it is another user's."""

    kind = "untrusted-place"


def require_trusted_folder(folder: Path) -> None:
    """Check a folder with state in it, and what leads there. Raises UntrustedPlace.

    A sticky folder, such as /tmp, may lead there: others cannot replace what is ours in it.
    """
    if not _POSIX:
        return
    own = {folder.resolve(), state_dir().resolve()}
    for place in _way_to(folder):
        _require_trusted(place, _status(place), leads=place not in own)


def require_trusted_way(path: Path) -> None:
    """Check the folders that lead to a file which need not exist. Raises UntrustedPlace."""
    if not _POSIX:
        return
    for place in _way_to(path.parent):
        _require_trusted(place, _status(place), leads=True)


def require_trusted_file(path: Path, status: os.stat_result) -> None:
    """Check a file, and what leads there; `status` is the opened file's. Raises UntrustedPlace."""
    if _POSIX and stat.S_ISREG(status.st_mode):  # a pipe is of the process that made it
        _require_trusted(path, status, leads=False)
        require_trusted_way(path)


def _way_to(folder: Path) -> list[Path]:
    """Return the folder and its parents, by links and without them, the nearest first."""
    shown, real = folder.absolute(), folder.resolve()
    return list(dict.fromkeys([real, *real.parents, shown, *shown.parents]))


def _status(place: Path) -> os.stat_result | None:
    try:
        return place.lstat()
    except OSError:
        return None  # not there yet, or hidden from us: what uses it says so


def _require_trusted(place: Path, status: os.stat_result | None, *, leads: bool) -> None:
    """Check one place; `leads` where it only leads to what is used."""
    if status is None:
        return
    if status.st_uid not in {os.geteuid(), _SYSTEM}:
        owner = _user(status.st_uid)
        mend = f"run this as {owner}"
        if os.geteuid() and not leads:  # root would be told to take what is somebody else's
            mend = f'`sudo chown -R "$(id -un)" {shlex.quote(str(place))}` if it is to be yours'
        raise UntrustedPlace(
            f"{place} belongs to another user ({owner})", hint=f"{mend}, or {_elsewhere(place)}"
        )
    is_sticky = bool(status.st_mode & stat.S_ISVTX)
    if stat.S_ISLNK(status.st_mode) or (leads and is_sticky):
        return
    if not status.st_mode & (_GROUP | _OTHERS):
        return
    mend = f"`chmod go-w {shlex.quote(str(place))}`"
    if status.st_mode & _OTHERS or not _is_private(place, status):
        # A folder such as /tmp must stay open, and one of root's would then be closed to us.
        ours = status.st_uid == os.geteuid() and not is_sticky
        mend = f"look at what is in it, then {mend}, or " if ours else ""
        raise UntrustedPlace(
            f"other users of this host may change {place} "
            f"(mode {stat.S_IMODE(status.st_mode):04o}), and with it what is done and sent where",
            hint=mend + _elsewhere(place),
        )
    if not leads:
        _warn(f"the group of this user may change {place}: {mend} ends that")


def _elsewhere(place: Path) -> str:
    if place in (state := state_dir().resolve(), *state.parents):
        return "set CELLAGENT_STATE_DIR to a folder that only you may change"
    return "use a folder that only you may change"


def _is_private(place: Path, status: os.stat_result) -> bool:
    """Return whether only this user is in the group that may write, as where the umask is 002."""
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
        return _ACL in os.listxattr(place)
    except (OSError, AttributeError):  # not on macOS
        return False


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


@cache
def _warn(text: str) -> None:
    _log.warning("%s", text)  # once, however often the place is used
