"""Address of the control socket: a path in the state folder, or a loopback port with a token."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent.files.paths import file_name_of, is_there
from agent.files.private_files import make_private_folder, write_private
from agent.files.trusted_places import require_trusted_folder
from agent.listening import BoundedListener

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Iterator

    Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_LONGEST_PATH = 100  # bytes; the kernel takes 107, macOS 103
_HANG_UP_S = 1.0  # for what was sent last to be read


class ControlSocket(Struct, frozen=True):
    """The address of an agent. `path` is the socket, or the file that names port and token."""

    path: Path

    @property
    def is_socket(self) -> bool:
        """Whether `path` is a socket, which its mode protects; else a token does."""
        return self.path.suffix == ".sock"

    def read_port(self) -> tuple[int, str]:
        """Return port and token. Raises OSError, ValueError, KeyError."""
        entry = json.loads(self.path.read_text("utf-8"))
        return int(entry["port"]), str(entry["token"])

    async def connect(
        self, *, limit: int = 65536
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect; a line that is read has at most `limit` bytes.

        Raises OSError, ValueError, KeyError; TimeoutError where too many wait for the agent.
        """
        import asyncio  # `config set`, which has no event loop, must not pay for it

        if sys.platform != "win32" and self.is_socket:
            return await asyncio.open_unix_connection(sock=self._connected(), limit=limit)
        return await asyncio.open_connection("127.0.0.1", self.read_port()[0], limit=limit)

    def is_listening(self) -> bool:
        """Return whether a process listens there; the file of one that was killed is left."""
        try:
            if sys.platform != "win32" and self.is_socket:
                self._connected().close()
            else:
                socket.create_connection(("127.0.0.1", self.read_port()[0]), 1.0).close()
        except TimeoutError:
            return True
        except (OSError, ValueError, KeyError):
            return False
        return True

    def _connected(self) -> socket.socket:
        """Connect to the socket. Raises OSError; TimeoutError where too many wait for the agent."""
        if sys.platform == "win32":
            raise OSError("this system has no such sockets")
        connected = socket.socket(socket.AF_UNIX)
        connected.setblocking(False)
        try:
            connected.connect(os.fspath(self.path))
        except OSError as error:
            connected.close()
            if isinstance(error, BlockingIOError):
                raise TimeoutError("it accepts no connection") from error
            raise
        return connected

    async def listen(self, connected: Connected, token: str, *, limit: int) -> asyncio.Server:
        """Listen for this user's own processes, in place of an agent that was killed.

        Makes the folder, 0700. `token` is what their requests must have where this is no socket;
        `limit` is the longest line in bytes. Raises OSError, FolderUnusable.
        """
        import asyncio

        make_private_folder(self.path.parent)
        self.path.unlink(missing_ok=True)
        if sys.platform != "win32" and self.is_socket:
            umask = os.umask(0o177)
            try:
                return await asyncio.start_unix_server(connected, self.path, limit=limit)
            finally:
                os.umask(umask)
        # Any user of this machine may connect. IPPROTO_TCP: asyncio asks for it.
        listening = BoundedListener(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        server = await asyncio.start_server(connected, sock=listening, limit=limit)
        entry = {"port": server.sockets[0].getsockname()[1], "token": token}
        write_private(self.path, json.dumps(entry).encode())
        return server


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection; who does not read what was sent last is cut off."""
    import asyncio

    writer.close()
    try:
        async with asyncio.timeout(_HANG_UP_S):
            await writer.wait_closed()
    except OSError:  # a TimeoutError is one
        writer.transport.abort()


def socket_folder(state_dir: Path) -> Path:
    """Return the folder that the agents of this state folder listen in."""
    return state_dir / "run"


def control_socket_of(state_dir: Path, profile: str) -> ControlSocket:
    """Return the control socket of a profile's agent. Raises UntrustedPlace, as control_sockets."""
    folder = socket_folder(state_dir)
    require_trusted_folder(folder)
    path = folder / f"{file_name_of(profile)[:100]}.sock"
    if sys.platform == "win32" or len(os.fsencode(path)) > _LONGEST_PATH:
        path = path.with_suffix(".port")
    return ControlSocket(path)


def bench_socket_of(state_dir: Path, profile: str) -> ControlSocket:
    """Return the socket on which a run at the bench of a profile gives links to its page.

    It is not among those of agents.
    """
    return control_socket_of(state_dir / "bench", profile)


def control_sockets(state_dir: Path) -> Iterator[ControlSocket]:
    """Yield the control socket of every agent that may run with this state folder.

    Raises UntrustedPlace where another user may have put one there.
    """
    folder = socket_folder(state_dir)
    if is_there(folder):
        require_trusted_folder(folder)
        for path in sorted(folder.iterdir()):
            if path.suffix in {".sock", ".port"} and not path.name.startswith("."):
                yield ControlSocket(path)
