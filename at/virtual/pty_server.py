"""A port of the virtual modem as a pseudo-terminal: clients come, go and come back."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import termios
import tty
from collections.abc import Callable
from pathlib import Path

from at.errors import PortError
from at.virtual.inotify import OpenCounter

_BACKLOG = 256 * 1024  # bytes that wait for a client that does not read; older ones are lost


class PtyServer:
    """A terminal whose far end is ours; `path` becomes a link to it.

    Like a UART it prints into the void while nobody has it open. When the last client has gone,
    its exclusive mark (TIOCEXCL), its settings and what it left unread go with it: the kernel
    keeps them as long as our end is open.
    """

    def __init__(self, path: str | Path, received: Callable[[bytes], None]) -> None:
        self._received = received
        self._loop = asyncio.get_running_loop()
        self._backlog = bytearray()
        self.link = Path(path)
        self._ours, self._theirs = os.openpty()
        self.device = os.ttyname(self._theirs)
        os.set_blocking(self._ours, False)
        self._settle()
        self._make_link()
        try:
            self._clients: OpenCounter | None = OpenCounter(self.device)
        except OSError:
            self._clients = None  # then somebody is thought to be there always
        self._loop.add_reader(self._ours, self._readable)
        if self._clients is not None:
            self._loop.add_reader(self._clients.fd, self._count)

    def _make_link(self) -> None:
        try:
            left_over = self.link.is_symlink() and (
                not self.link.exists() or self.link.readlink() == Path(self.device)
            )
            if left_over:
                self.link.unlink()  # of a run that was killed: it leads nowhere, or by chance here
            self.link.symlink_to(self.device)
        except OSError as error:
            os.close(self._ours)
            os.close(self._theirs)
            raise PortError(
                f"cannot make {self.link}: {error.strerror}",
                hint="give a path that does not exist yet, in a folder that you may write to",
            ) from error

    def _settle(self) -> None:
        """Make the terminal what it is for a new client: raw, free, empty."""
        tty.setraw(self._theirs, termios.TCSANOW)
        fcntl.ioctl(self._theirs, termios.TIOCNXCL)
        termios.tcflush(self._theirs, termios.TCIFLUSH)

    def _count(self) -> None:
        if self._clients is not None and self._clients.read():
            self._backlog.clear()
            self._loop.remove_writer(self._ours)
            self._settle()

    def _readable(self) -> None:
        self._count()  # who typed this opened the terminal before
        try:
            data = os.read(self._ours, 65536)
        except (BlockingIOError, InterruptedError):
            return
        self._received(data)

    def send(self, data: bytes) -> None:
        """Print bytes, if somebody has the terminal open."""
        self._count()
        if self._clients is not None and not self._clients.open:
            return
        if self._backlog:
            self._backlog += data
            del self._backlog[:-_BACKLOG]
            return
        sent = self._write(data)
        if sent < len(data):
            self._backlog += data[sent:]
            self._loop.add_writer(self._ours, self._writable)

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self._ours, data)
        except (BlockingIOError, InterruptedError):
            return 0

    def _writable(self) -> None:
        del self._backlog[: self._write(bytes(self._backlog))]
        if not self._backlog:
            self._loop.remove_writer(self._ours)

    def close(self) -> None:
        """Hang up and take the link away, if it is still ours."""
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        if self._clients is not None:
            self._loop.remove_reader(self._clients.fd)
            self._clients.close()
        with contextlib.suppress(OSError):
            if self.link.readlink() == Path(self.device):
                self.link.unlink()
        os.close(self._ours)
        os.close(self._theirs)
