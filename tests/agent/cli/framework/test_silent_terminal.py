"""Questions at a terminal: Ctrl-C ends one, and a secret stays unseen over Ctrl-Z and `fg`."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.config.write import set_default_profile, write_profile
from agent.files.paths import config_file, secrets_file
from tests.support.commands.command_line import private_text
from tests.support.commands.on_a_terminal import take_terminal
from tests.support.commands.typist import PATIENCE_S, Typist, at_a_shell

SHELL = """set -m
"$0" -m agent config set api_key
stty -a
stty sane
echo goes on
fg
stty -a
echo has ended
"""
"""Dash leaves a terminal as the job had it; bash and zsh give it their own modes with `fg`."""


@pytest.fixture
def typist(private_home: Path) -> Iterator[Typist]:
    """Give somebody at the terminal of a shell that asks for a secret of the home."""
    assert private_home.is_dir()
    with at_a_shell(SHELL) as typist:
        yield typist


def until_asleep(process: subprocess.Popen[bytes]) -> None:
    """Wait until it waits: before, between question and reading, Python only notes a Ctrl-C."""
    deadline = time.monotonic() + PATIENCE_S
    state = ["ps", "-o", "state=", "-p", str(process.pid)]
    while not subprocess.check_output(state).startswith(b"S"):
        assert time.monotonic() < deadline


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_a_secret_is_not_shown_after_a_stop_and_the_shell_has_its_terminal(typist: Typist) -> None:
    typist.reads(b"api_key: ")
    typist.until_off(termios.ECHO)
    typist.types(b"cut\x1a")
    typist.reads(b"goes on")
    typist.until_off(termios.ECHO)
    typist.types(b"hidden\n")
    typist.reads(b"has ended")
    assert b"hidden" not in typist.screen
    stopped, _, ended = typist.screen.partition(b"goes on")
    assert b" echo " in stopped
    assert b" echo " in ended
    assert b"api_key: " in ended
    secrets = private_text(str(secrets_file(config_file())))
    assert ('"hidden"' in secrets, "cut" in secrets) == (True, False)


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is missing: apt install procps")
@pytest.mark.parametrize(
    ("arguments", "asks", "typed", "code", "says"),
    [
        (["login", "api_key"], "cloud: ", b"\x03", 130, "stopped by Ctrl-C"),
        (["observe", "user-key", "--delete"], "[y/N]: ", b"\x03", 130, ""),
        (["login", "api_key"], "cloud: ", b"\x04", 2, "no secret was given"),
        (["config", "set", "api_key"], "api_key: ", b"\x04", 2, "nothing came"),
    ],
)
@pytest.mark.usefixtures("private_home")
def test_ctrl_c_ends_a_question_and_ctrl_d_is_no_answer(
    arguments: list[str], asks: str, typed: bytes, code: int, says: str
) -> None:
    write_profile("lab", {"hosts": {"device_cloud": "http://127.0.0.1:1"}}, {"api_key": "k"})
    set_default_profile("lab")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
    )  # fmt: skip
    os.close(theirs)
    typist = Typist(ours)
    typist.reads(asks.encode())
    until_asleep(process)
    typist.types(typed)
    typist.reads(says.encode())
    assert process.wait(PATIENCE_S) == code
    os.close(ours)


FOREGROUND = """
import contextlib, sys
from agent.cli.framework.silent_terminal import in_foreground
print(in_foreground(), flush=True)
with contextlib.suppress(OSError):  # it ends as a file does, or fails where it was gone before
    sys.stdin.buffer.raw.read(1)
print(in_foreground())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_a_terminal_of_another_session_is_ours_to_read_until_it_is_closed() -> None:
    """As of `setsid cellagent provision run --watch`."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", FOREGROUND],
        stdin=theirs,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        os.close(ours)
        assert process.stdout.read() == b"False\n"
    assert process.returncode == 0
