"""Paths of the configuration, the secrets and the state; the environment may name others."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote


def named_path(text: str | Path) -> Path:
    """Return the path that a person wrote; ~ is the home, where one is known."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path's own raises where none is


def file_name_of(name: str) -> str:
    """Return a name that may hold any characters as one of a file, without a dot in it."""
    return quote(name, safe="").replace(".", "%2E")[:200]


def is_there(path: Path) -> bool:
    """Return whether a path leads to something. Raises OSError where that cannot be seen.

    `Path.exists` of Python 3.14 takes for missing what is in a folder that is closed to this user.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def config_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the configuration file; it need not exist."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("CELLAGENT_CONFIG"):
        path = named_path(chosen)
        return path / "config.toml" if path.is_dir() else path
    return _of_this_user("XDG_CONFIG_HOME", "~/.config") / "config.toml"


def secrets_file(file: Path) -> Path:
    """Return the path of the secrets file, in the folder of a configuration file."""
    return file.with_name("secrets.toml")


def state_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder for state; it need not exist."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("CELLAGENT_STATE_DIR"):
        return named_path(chosen)
    return _of_this_user("XDG_STATE_HOME", "~/.local/state")


def _of_this_user(variable: str, elsewhere: str) -> Path:
    """Return our folder among the user's own, as each system has them.

    A variable of XDG counts where it is an absolute path; `elsewhere` is what XDG says without it.
    A user who has no home has / as one, as in a container.
    """
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif os.path.isabs(named := os.environ.get(variable, "")):  # noqa: PTH117 - a text
        folder = named
    else:
        folder = "~/Library/Application Support" if sys.platform == "darwin" else elsewhere
    own = named_path(folder)
    # A ~ that stays is a folder of that name, another one wherever a command is started.
    return (own if own.is_absolute() else Path("/", *own.parts[1:])) / "cellagent"
