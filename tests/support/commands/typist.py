"""Somebody at a program of others, which runs on a pseudo-terminal."""

import os
import pty
import select
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.commands.on_a_terminal import take_terminal

PATIENCE_S = 90


class Typist:
    """Somebody at a terminal program."""

    def __init__(self, terminal: int) -> None:
        self.terminal = terminal
        self.screen = b""

    def reads(self, text: bytes) -> None:
        """Wait until `text` is on the screen."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.screen:
            ready, _, _ = select.select([self.terminal], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} never came: {self.screen!r}"
            self.screen += os.read(self.terminal, 65536)

    def types(self, text: bytes) -> None:
        os.write(self.terminal, text)

    def until_off(self, mode: int) -> None:
        """Wait until a local mode of the terminal is off: termios.ECHO, termios.ICANON."""
        deadline = time.monotonic() + PATIENCE_S
        while termios.tcgetattr(self.terminal)[3] & mode:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def at_a_shell(script: str, *arguments: str) -> Iterator[Typist]:
    """Run a script of a shell whose terminal it is; `$0` is this Python, `$1` the first argument.

    Its terminal has the usual modes, and is closed at the end.
    """
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["sh", "-c", script, sys.executable, *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - one call of the system
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Typist(ours)
    finally:
        os.close(ours)
        shell.wait(PATIENCE_S)


@contextmanager
def at_the_keyboard(
    *command: str, environment: Mapping[str, str] | None = None
) -> Iterator[Typist]:
    """Run a program on a terminal until the block ends; it must end by itself then."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    # A shell wants its terminal to be the one that its session is controlled by.
    program = subprocess.Popen(
        command,
        env=environment,
        preexec_fn=lambda: os.login_tty(theirs),  # noqa: PLW1509
    )
    os.close(theirs)
    try:
        yield Typist(ours)
        program.wait(PATIENCE_S)
    finally:
        if program.poll() is None:
            program.kill()
            program.wait()
        os.close(ours)
