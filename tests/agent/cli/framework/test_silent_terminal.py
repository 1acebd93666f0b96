"""Questions at a terminal: Ctrl-C ends one, and a secret stays unseen over Ctrl-Z and `fg`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import private_text
from on_a_terminal import take_terminal

from agent.config.paths import config_file, secrets_file
from agent.config.write import set_default_profile, write_profile

PATIENCE_S = 90
SHELL = """set -m
"$0" -m agent config set api_key
stty -a
stty sane
fg
stty -a
"""
"""Dash leaves a terminal as the job had it; bash and zsh give it their own modes with `fg`."""


@pytest.fixture
def ours(private_home: Path) -> Iterator[int]:
    """Yield our end of the terminal of a shell that asks for a secret of the home."""
    assert private_home.is_dir()
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["sh", "-c", SHELL, sys.executable],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
    )  # fmt: skip
    os.close(theirs)
    yield ours
    os.close(ours)
    shell.wait(PATIENCE_S)


def until(terminal: int, text: str) -> str:
    shown = ""
    while text not in shown:
        shown += os.read(terminal, 4096).decode()
    return shown


def until_silent(terminal: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while termios.tcgetattr(terminal)[3] & termios.ECHO:
        assert time.monotonic() < deadline


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_a_secret_is_not_shown_after_a_stop_and_the_shell_has_its_terminal(ours: int) -> None:
    until(ours, "api_key: ")
    until_silent(ours)
    os.write(ours, b"cut\x1a")
    modes = until(ours, "echoke")
    assert " echo " in modes, modes
    until(ours, "config set")  # what `fg` says
    until_silent(ours)
    os.write(ours, b"hidden\n")
    shown = until(ours, "echoke")
    assert "hidden" not in shown
    assert " echo " in shown
    secrets = private_text(str(secrets_file(config_file())))
    assert ('"hidden"' in secrets, "cut" in secrets) == (True, False)


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
@pytest.mark.parametrize(
    ("arguments", "asks"),
    [(["login", "api_key"], "cloud: "), (["observe", "user-key", "--delete"], "[y/N]: ")],
)
@pytest.mark.usefixtures("private_home")
def test_ctrl_c_ends_a_question(arguments: list[str], asks: str) -> None:
    write_profile("lab", {"hosts": {"device_cloud": "http://127.0.0.1:1"}}, {"api_key": "k"})
    set_default_profile("lab")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
    )  # fmt: skip
    os.close(theirs)
    until(ours, asks)
    os.write(ours, b"\x03")
    assert process.wait(PATIENCE_S) == 130
    os.close(ours)
