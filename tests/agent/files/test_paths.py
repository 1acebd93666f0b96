"""Where the configuration and the state lie on each system."""

from __future__ import annotations

import sys

import pytest

from agent.files.paths import config_file, state_dir


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
