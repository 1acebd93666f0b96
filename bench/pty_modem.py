"""A modem in a process of its own on a PTY, as fast as it can be, and where it is pinned."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import tty
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANSWERS = {
    b"AT": b"\r\nOK\r\n",
    b"AT+CMEE?": b"\r\n+CMEE: 1\r\n\r\nOK\r\n",
    b"AT+CFUN?": b"\r\n+CFUN: 1\r\n\r\nOK\r\n",
}


def answering(master: int) -> None:
    """Answer each command at once."""
    buffer = b""
    while True:
        buffer += os.read(master, 4096)
        while b"\r" in buffer:
            command, _, buffer = buffer.partition(b"\r")
            os.write(master, ANSWERS.get(command, b"\r\nERROR\r\n"))


@contextlib.contextmanager
def serving(
    work: Callable[[int], None] = answering, *, modem_cpu: int = 0, host_cpu: int | None = 0
) -> Iterator[str]:
    """Run `work` on the far end of a PTY in a child; yield the near end's path.

    `host_cpu` None leaves this process where it is.
    """
    master, slave = pty.openpty()
    tty.setraw(slave)
    before = os.sched_getaffinity(0)
    available = sorted(before)
    child = os.fork()
    if child == 0:
        os.close(slave)
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {available[modem_cpu % len(available)]})
            work(master)
        os._exit(0)
    os.close(master)
    if host_cpu is not None:
        os.sched_setaffinity(0, {available[host_cpu % len(available)]})
    try:
        yield os.ttyname(slave)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(slave)
        os.sched_setaffinity(0, before)
