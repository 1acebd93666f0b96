"""A virtual kit on all its ports: AT, console and the Wi-Fi companion, each on a terminal."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from at.virtual.modem import Port, VirtualModem
from at.virtual.server.pty import PtyServer, serve_terminal
from at.virtual.server.runner import ModemRunner
from at.virtual.server.tcp import TcpServer, serve_tcp


@dataclass(frozen=True, slots=True)
class KitPorts:
    """A kit that is being served, and the server of each of its ports."""

    runner: ModemRunner
    at: PtyServer | TcpServer
    console: PtyServer | TcpServer
    companion: PtyServer | TcpServer


@contextlib.asynccontextmanager
async def kit_on_ports(modem: VirtualModem, folder: Path) -> AsyncIterator[KitPorts]:
    """Serve a kit whose console is apart until the block ends. Raises PortError.

    The terminals are links in `folder`; where the system has none, the ports are TCP's.
    """
    runner = ModemRunner(modem)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(runner.stop)
        servers: dict[str, PtyServer | TcpServer] = {}
        for port in Port:
            link = folder / ("kit" if port is Port.AT else port.value)
            server = await served(stack, link, partial(runner.receive, port=port))
            runner.attach(port, server.send)
            servers[port.value] = server
        runner.start()
        yield KitPorts(runner, **servers)


async def served(
    stack: contextlib.AsyncExitStack, path: Path, received: Callable[[bytes], None]
) -> PtyServer | TcpServer:
    """Serve one port until `stack` unwinds: on a terminal, on TCP where the system has none."""
    if sys.platform == "win32":
        return await serve_tcp(stack, "127.0.0.1", 0, received)
    return serve_terminal(stack, path, received)
