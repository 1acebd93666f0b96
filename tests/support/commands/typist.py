"""Somebody at a program of others, which runs on a pseudo-terminal."""

import os
import pty
import select
import subprocess
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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
