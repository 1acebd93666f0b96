"""A port of the virtual modem as a pseudo-terminal: clients open and close it at any time."""

import asyncio
import contextlib
import os
import re
import select
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from at.ports.holders import shown_process
from at.protocol.errors import PortError
from at.virtual.server.client_count import ClientCount

_DRAIN_TIMEOUT_S = 2.0
# The target of a link of ours: /proc/PID/fd/N, or the device itself where there is no /proc.
_TERMINAL = re.compile(r"/proc/(?P<pid>\d+)/fd/\d+|/dev/pts/\d+|/dev/ttys\d+")
_BACKLOG = 256 * 1024  # bytes that wait for a client that does not read; older ones are lost


class PtyServer:
    """A pseudo-terminal that clients open through the link `path`; its other end is ours.

    Like a UART it discards output while nobody has it open. When the last client has gone, its
    exclusive mark (TIOCEXCL), its settings and its unread bytes are cleared here: the kernel would
    keep them as long as our end is open.
    """

    def __init__(self, path: str | Path, received: Callable[[bytes], None]) -> None:
        self._received = received
        self._loop = asyncio.get_running_loop()
        self.link = Path(path).absolute()  # whoever is told it may be in another folder
        self.opened: Callable[[], None] = lambda: None
        """Called when a client has opened the terminal."""
        self._plugged = False
        self.plug_in()

    @property
    def port(self) -> str:
        """The path that clients open."""
        return str(self.link)

    def plug_in(self) -> None:
        """Make the terminal and its link, again after `close`. Raises PortError.

        Plugging in twice is harmless.
        """
        if self._plugged:
            return
        self._backlog = bytearray()
        self._ours, self._theirs, self.device = _new_terminal(self.link)
        self._reset_terminal()
        try:
            self._clients: ClientCount | None = ClientCount(self.device, self._clients_changed)
        except OSError:
            self._clients = None  # without inotify a client is assumed to be always there
        try:
            _make_link(self.link, self._name_until_exit())
        except PortError:
            self._close_ends()
            raise
        self._plugged = True
        self._loop.add_reader(self._ours, self._readable)

    def _name_until_exit(self) -> str:
        """Return a name of the terminal that is valid only while this process lives.

        After a kill /dev/pts/7 soon belongs to another program, whose shell a client would reach.
        """
        name = f"/proc/{os.getpid()}/fd/{self._theirs}"
        return name if os.path.realpath(name) == self.device else self.device

    def _reset_terminal(self) -> None:
        """Reset the terminal for a new client: raw mode, not exclusive, empty."""
        if sys.platform == "win32":
            return
        import fcntl
        import termios
        import tty

        tty.setraw(self._theirs, termios.TCSANOW)
        fcntl.ioctl(self._theirs, termios.TIOCNXCL)
        termios.tcflush(self._theirs, termios.TCIFLUSH)

    def _clients_changed(self, gone: bool) -> None:
        if gone:
            self._backlog.clear()
            self._loop.remove_writer(self._ours)
            self._reset_terminal()
        if self._clients is not None and self._clients.open:
            self.opened()

    def _update_clients(self) -> None:
        if self._clients is not None:
            self._clients.update()
        else:
            self.opened()

    def _has_client(self) -> bool:
        """Return whether somebody has it open. An end that is closed is by now another's file."""
        if not self._plugged:
            return False
        self._update_clients()
        return self._clients is None or self._clients.open > 0

    def _readable(self) -> None:
        self._update_clients()  # its sender has opened the terminal before
        try:
            data = os.read(self._ours, 65536)
        except (BlockingIOError, InterruptedError):
            return
        self._received(data)

    def send(self, data: bytes) -> None:
        """Send bytes, if a client has the terminal open."""
        if not self._has_client():
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
        """Remove the terminal, as when a kit is unplugged; unless `for_good`, make it again.

        It first waits a while until the client has read what was sent: closing our end discards it.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_TIMEOUT_S):
                while self._unread():  # noqa: ASYNC110 - reading has no event
                    await asyncio.sleep(0.005)
        self.close()
        if not for_good:
            self.plug_in()

    def _unread(self) -> bool:
        """Return whether a client has yet to read what was sent."""
        if not self._has_client():
            return False
        # Not FIONREAD: the kernel hands bytes over a moment after they are written.
        ready = select.select([self._theirs], [], [], 0)[0]
        return bool(self._backlog) or (self._clients is not None and bool(ready))

    def close(self) -> None:
        """Close the terminal and remove the link if it is still ours. Closing twice is harmless."""
        if not self._plugged:
            return
        self._plugged = False
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)
        with contextlib.suppress(OSError):
            if os.path.realpath(self.link) == self.device:
                self.link.unlink()
        self._close_ends()

    def _close_ends(self) -> None:
        if self._clients is not None:
            self._clients.close()
        os.close(self._ours)
        os.close(self._theirs)


def serve_terminal(
    stack: contextlib.AsyncExitStack, path: str | Path, received: Callable[[bytes], None]
) -> PtyServer:
    """Serve a terminal, `path` being a link to it, until `stack` unwinds. Raises PortError."""
    terminal = PtyServer(path, received)
    stack.callback(terminal.close)
    return terminal


def _make_link(link: Path, target: str) -> None:
    """Make `link`, replacing one that a killed run left behind. Raises PortError."""
    try:
        if (
            link.is_symlink()
            and _TERMINAL.fullmatch(str(link.readlink()))
            and not _leads_to_terminal(link)
        ):
            link.unlink()
        link.symlink_to(target)
    except FileExistsError as error:
        raise PortError(
            f"cannot make {link}: {_occupant(link)}",
            hint="give another path, or take away what is there if nobody needs it",
        ) from error
    except OSError as error:
        raise PortError(
            f"cannot make {link}: {error.strerror}",
            hint="give a path that does not exist yet, in a folder that you may write to",
        ) from error


def _leads_to_terminal(link: Path) -> bool:
    """Return whether a link leads to an existing terminal."""
    try:
        return stat.S_ISCHR(link.stat().st_mode)
    except FileNotFoundError:
        return False


def _occupant(link: Path) -> str:
    if not link.is_symlink():
        return "it exists already"
    served = _TERMINAL.fullmatch(str(link.readlink()))
    if served is not None and served["pid"]:
        return f"it is a terminal that {shown_process(Path('/proc', served['pid']))} serves"
    return f"it is a link to {link.readlink()} already"


def _new_terminal(link: Path) -> tuple[int, int, str]:
    """Return the two ends of a terminal, ours first, and its name. Raises PortError."""
    if sys.platform == "win32":
        raise PortError(
            "Windows has no pseudo-terminals", hint="serve on TCP: `--tcp 127.0.0.1:2323`"
        )
    try:
        ours, theirs = os.openpty()
    except OSError as error:
        raise PortError(
            f"cannot make a terminal for {link}: {error.strerror}",
            hint="fewer kits in one process, or allow it more open files: `ulimit -n 8192`",
        ) from error
    os.set_blocking(ours, False)
    return ours, theirs, os.ttyname(theirs)
