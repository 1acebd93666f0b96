"""Serve an AT port for a command: on a terminal, or a TCP address (loopback by default)."""

from collections.abc import Callable
from contextlib import AsyncExitStack

import click

from agent.config.urls import host_and_port, is_loopback
from agent.errors import RefusedByRule, UsageError
from at.virtual.server.pty import PtyServer, serve_terminal
from at.virtual.server.tcp import TcpServer, serve_tcp

PTY = click.option("--pty", metavar="PATH", help="Serve on a terminal; PATH becomes a link to it.")
TCP = click.option(
    "--tcp", metavar="HOST:PORT", help="Serve on TCP; port 0 takes any that is free."
)
ALLOW_REMOTE = click.option("--allow-remote", is_flag=True, help="Let other machines connect.")
CMD = click.argument("cmd", nargs=-1, type=click.UNPROCESSED)


async def serve_port(
    stack: AsyncExitStack,
    received: Callable[[bytes], None],
    *,
    pty: str | None,
    tcp: str | None,
    allow_remote: bool,
) -> PtyServer | TcpServer:
    """Serve a terminal or a TCP address, whichever is named, until `stack` unwinds.

    Raises UsageError, RefusedByRule for an address that is no loopback without `allow_remote`.
    """
    if tcp is not None:
        return await serve_tcp(stack, *_address(tcp, allow_remote), received)
    assert pty is not None
    return serve_terminal(stack, pty, received)


def require_one(pty: str | None, tcp: str | None) -> None:
    """Raise UsageError unless exactly one of the two is named."""
    if (pty is None) == (tcp is None):
        hint = "`--pty /tmp/kit`" if tcp is None else ""
        raise UsageError("say where to serve: either --pty PATH or --tcp HOST:PORT", hint=hint)


def _address(text: str, allow_remote: bool) -> tuple[str, int]:
    host, port = host_and_port(text.removeprefix("tcp://"), "--tcp")
    if not is_loopback(host) and not allow_remote:
        raise RefusedByRule(
            f"{host} is reached from other machines", hint="`--allow-remote` does, if you mean it"
        )
    return host, port
