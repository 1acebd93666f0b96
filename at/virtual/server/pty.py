"""A port of the virtual modem as a pseudo-terminal: clients come, go and come back."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import re
import select
import stat
import struct
import termios
import tty
from collections.abc import Callable
from pathlib import Path

from at.ports.holders import shown_process
from at.protocol.errors import PortError

_OPENED, _CLOSED = 0x20, 0x08 | 0x10  # IN_OPEN; IN_CLOSE_WRITE or IN_CLOSE_NOWRITE
_EVENT = struct.Struct("iIII")
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class OpenCounter:
    """Counts how many times a file is open, from now on. Raises OSError where inotify is not.

    The kernel gives two equal events that were not read in time as one. So where the last opener
    seems to have gone, /proc is asked whether another is still there.
    """

    def __init__(self, path: str) -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            self.fd = libc.inotify_init1(_FLAGS)
            added = libc.inotify_add_watch(self.fd, os.fsencode(path), _OPENED | _CLOSED)
        except AttributeError as error:
            raise OSError("no inotify on this system") from error
        if self.fd < 0 or added < 0:
            raise OSError(ctypes.get_errno(), "inotify", path)
        self.open = 0
        self._path = path
        self._ours = _descriptors(path)

    def read(self) -> bool:
        """Take in what happened; return whether the last opener has gone since the last call."""
        gone = False
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                break
            place = 0
            while place < len(data):
                _, mask, _, name_size = _EVENT.unpack_from(data, place)
                place += _EVENT.size + name_size
                if mask & _OPENED:
                    self.open += 1
                elif mask & _CLOSED:
                    self.open = max(0, self.open - 1)
                    gone = gone or self.open == 0
        if gone and self.open == 0 and self._ours:
            self.open = max(0, _descriptors(self._path) - self._ours)
            gone = self.open == 0
        return gone

    def close(self) -> None:
        """Stop counting."""
        os.close(self.fd)


def _descriptors(path: str) -> int:
    """Return how many descriptors of processes that we may look into lead to a file."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError), os.scandir(process / "fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found += os.readlink(entry.path) == path  # noqa: PTH115 - thousands of them
    return found


_LAST_WORDS_S = 2.0
# What a link of ours leads to: /proc/PID/fd/N, or the device itself where there is no /proc.
_TERMINAL = re.compile(r"/proc/(?P<pid>\d+)/fd/\d+|/dev/pts/\d+|/dev/ttys\d+")
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
        self.link = Path(path)
        self.opened: Callable[[], None] = lambda: None
        """Called when somebody has opened the terminal."""
        self._plugged = False
        self._plug_in()

    @property
    def port(self) -> str:
        """Where clients find it."""
        return str(self.link)

    def _plug_in(self) -> None:
        self._backlog = bytearray()
        self._ours, self._theirs = os.openpty()
        self.device = os.ttyname(self._theirs)
        os.set_blocking(self._ours, False)
        self._settle()
        try:
            self._clients: OpenCounter | None = OpenCounter(self.device)
        except OSError:
            self._clients = None  # then somebody is thought to be there always
        try:
            _make_link(self.link, self._lifelong_name())
        except PortError:
            self._close_ends()
            raise
        self._plugged = True
        self._loop.add_reader(self._ours, self._readable)
        if self._clients is not None:
            self._loop.add_reader(self._clients.fd, self._count)

    def _lifelong_name(self) -> str:
        """Return a name of the terminal that ends with this process.

        /dev/pts/7 belongs to somebody else soon after a kill: a client would type into his shell.
        """
        name = f"/proc/{os.getpid()}/fd/{self._theirs}"
        return name if os.path.realpath(name) == self.device else self.device

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
        if self._clients is None or self._clients.open:
            self.opened()

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

    async def hang_up(self, *, for_good: bool) -> None:
        """Go as a kit goes that is unplugged; unless `for_good`, come back as it does.

        What was printed is read first, for a while: a terminal forgets it when its far end goes.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                while self._backlog or self._unread():  # noqa: ASYNC110 - reading has no event
                    await asyncio.sleep(0.005)
        self.close()
        if not for_good:
            self._plug_in()

    def _unread(self) -> bool:
        """Tell whether a client has yet to read what was printed."""
        self._count()
        if self._clients is None or not self._clients.open:
            return False
        # Not FIONREAD: the kernel hands bytes over a moment after they were written.
        return bool(select.select([self._theirs], [], [], 0)[0])

    def close(self) -> None:
        """Hang up and take the link away, if it is still ours. Closing twice is harmless."""
        if not self._plugged:
            return
        self._plugged = False
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        if self._clients is not None:
            self._loop.remove_reader(self._clients.fd)
        with contextlib.suppress(OSError):
            if os.path.realpath(self.link) == self.device:
                self.link.unlink()
        self._close_ends()

    def _close_ends(self) -> None:
        if self._clients is not None:
            self._clients.close()
        os.close(self._ours)
        os.close(self._theirs)


def _make_link(link: Path, target: str) -> None:
    """Make `link`, in the place of one that a killed run left. Raises PortError."""
    try:
        if link.is_symlink() and _TERMINAL.fullmatch(str(link.readlink())) and not _leads(link):
            link.unlink()
        link.symlink_to(target)
    except FileExistsError as error:
        raise PortError(
            f"cannot make {link}: {_what_is_there(link)}",
            hint="give another path, or take away what is there if nobody needs it",
        ) from error
    except OSError as error:
        raise PortError(
            f"cannot make {link}: {error.strerror}",
            hint="give a path that does not exist yet, in a folder that you may write to",
        ) from error


def _leads(link: Path) -> bool:
    """Tell whether a link leads to a terminal."""
    try:
        return stat.S_ISCHR(link.stat().st_mode)
    except FileNotFoundError:
        return False


def _what_is_there(link: Path) -> str:
    if not link.is_symlink():
        return "it exists already"
    served = _TERMINAL.fullmatch(str(link.readlink()))
    if served is not None and served["pid"]:
        return f"it is a terminal that {shown_process(Path('/proc', served['pid']))} serves"
    return f"it is a link to {link.readlink()} already"
