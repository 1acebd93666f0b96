"""A terminal that does not show what is typed at it: secrets, and the keys of a bench."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from agent.cli.framework.safe_text import printable
from agent.cli.framework.terminal import ended_by_ctrl_c


def typed_secret(prompt: str) -> str:
    """Ask for a secret at the terminal; Ctrl-D is no answer, ""."""
    import getpass

    prompt = printable(prompt)
    with ended_by_ctrl_c(), silent_terminal(prompt), contextlib.suppress(EOFError):
        return getpass.getpass(prompt)
    return ""


def in_foreground() -> bool:
    """Return whether the terminal of standard input is ours to read, and not another job's."""
    if sys.platform == "win32":
        return True
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # it is not that of our session, as under `setsid`, and has no jobs of ours
        return sys.stdin.isatty()  # unless it was closed


@contextlib.contextmanager
def silent_terminal(prompt: str = "") -> Iterator[None]:
    """Have the terminal of standard input not show what is typed; give it back in the end.

    Without a `prompt`, which is shown again with `fg`, it gives each character at once.
    """
    if sys.platform == "win32":
        yield
        return
    import termios

    silent = termios.tcgetattr(sys.stdin.fileno())
    silent[3] &= ~(termios.ECHO if prompt else termios.ECHO | termios.ICANON)
    with terminal_modes(silent, shown_again=lambda: prompt):
        yield


@contextlib.contextmanager
def terminal_modes(
    ours: list[Any] | None = None, *, shown_again: Callable[[], str]
) -> Iterator[None]:
    """Give the terminal of standard input back in the end, and while Ctrl-Z stops us.

    It gets the modes `ours`; None leaves it to a library to set what it wants. Shells differ in
    the modes that they leave a terminal with once Ctrl-Z stopped a job, and when it goes on: it is
    given back before, and taken again after, with what is then shown again.
    """
    if sys.platform == "win32":
        yield
        return
    import signal
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    by_library = ours is None

    def stop(*_: object) -> None:
        nonlocal ours
        with contextlib.suppress(termios.error):
            ours = termios.tcgetattr(terminal) if by_library else ours
            termios.tcsetattr(terminal, termios.TCSANOW, before)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)  # without a shell that could go on with us: nothing
        signal.signal(signal.SIGTSTP, stop)
        take()
        with contextlib.suppress(OSError):  # the terminal was closed
            os.write(terminal, shown_again().encode())

    def take(*_: object) -> None:
        with contextlib.suppress(termios.error, OSError):  # the terminal was closed
            if ours is not None and in_foreground():  # from the background it would stop us
                termios.tcsetattr(terminal, termios.TCSANOW, ours)

    handlers = {signal.SIGTSTP: stop, signal.SIGCONT: take}
    found = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    take()
    try:
        yield
    finally:
        for number, handler in found.items():
            signal.signal(number, handler)
        with contextlib.suppress(termios.error):  # the terminal was closed
            # What a scanner typed too late is no command of the shell's.
            termios.tcflush(terminal, termios.TCIFLUSH)
            termios.tcsetattr(terminal, termios.TCSANOW, before)
