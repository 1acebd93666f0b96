"""Where the configuration and the state lie on each system."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agent.files.paths import config_file, is_there, named_path, state_dir


@pytest.mark.parametrize(
    ("platform", "variables", "config", "state"),
    [
        ("linux", {}, "/h/.config/cellagent", "/h/.local/state/cellagent"),
        ("linux", {"XDG_CONFIG_HOME": "/c"}, "/c/cellagent", "/h/.local/state/cellagent"),
        ("linux", {"XDG_STATE_HOME": "/s"}, "/h/.config/cellagent", "/s/cellagent"),
        # XDG: a relative path is no path; an empty one is none.
        ("linux", {"XDG_CONFIG_HOME": "c"}, "/h/.config/cellagent", "/h/.local/state/cellagent"),
        ("linux", {"XDG_STATE_HOME": ""}, "/h/.config/cellagent", "/h/.local/state/cellagent"),
        ("darwin", {}, *["/h/Library/Application Support/cellagent"] * 2),
        ("darwin", {"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, "/c/cellagent",
         "/s/cellagent"),
        ("win32", {"LOCALAPPDATA": "/l", "XDG_STATE_HOME": "/s"}, *["/l/cellagent"] * 2),
        ("win32", {}, *["/h/AppData/Local/cellagent"] * 2),
    ],
)  # fmt: skip
def test_the_folders_are_those_of_the_system(
    platform: str,
    variables: dict[str, str],
    config: str,
    state: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CELLAGENT_STATE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/h", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert str(config_file()) == f"{config}/config.toml"
    assert str(state_dir()) == state


def test_a_home_that_nobody_has_is_a_name_as_any_other(private_home: Path) -> None:
    """Of a service without a home, or mistyped: what opens the file says that it is not there."""
    nobody = "~nobody-of-this-name/x"
    assert named_path("~/x") == private_home / "x"
    assert named_path(nobody) == Path(nobody)
    assert state_dir({"CELLAGENT_STATE_DIR": nobody}) == Path(nobody)
    assert config_file({"CELLAGENT_CONFIG": nobody}) == Path(nobody)


def test_who_has_no_home_has_the_root_and_not_a_folder_of_each_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A user without a home and without an entry in passwd, as in a container."""
    for name in ("CELLAGENT_STATE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert config_file() == Path("/.config/cellagent/config.toml")
    assert state_dir() == Path("/.local/state/cellagent")


def test_what_cannot_be_looked_at_is_not_taken_for_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert is_there(tmp_path / "file")
    assert not is_there(tmp_path / "none")
    assert not is_there(tmp_path / "file" / "within")
    with pytest.raises(OSError, match="File name too long"):
        is_there(tmp_path / ("x" * 300))
