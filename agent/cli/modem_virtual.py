"""`cellagent modem virtual`: a stateful nRF91 on a PTY or a TCP port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from agent.cli.frame import AgentCommand, emit, options, run, say
from agent.errors import RefusedByRule, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack

    from at.virtual.options import Options


@dataclass(frozen=True, slots=True)
class Places:
    """Where the ports of the kit are served."""

    pty: str | None
    tcp: str | None
    console: str | None
    companion: str | None
    allow_remote: bool


@click.command(
    cls=AgentCommand,
    name="virtual",
    epilog="Example: cellagent modem virtual --pty /tmp/kit -- picocom /tmp/kit",
)
@click.option("--pty", metavar="PATH", help="Serve on a terminal; PATH becomes a link to it.")
@click.option("--tcp", metavar="HOST:PORT", help="Serve on TCP; port 0 takes any that is free.")
@click.option("--console", metavar="PATH", help="A terminal for the application's console.")
@click.option("--companion", metavar="PATH", help="A terminal for an ESP-AT that scans Wi-Fi.")
@click.option("--allow-remote", is_flag=True, help="Let other machines connect.")
@click.option("--model", default="", metavar="MODEL", help="nrf9160, nrf9161 (usual) or nrf9151.")
@click.option("--firmware", default="", metavar="V", help="1.3.7, or mfw_nrf9160_1.3.7.")
@click.option("--imei", default="", metavar="N", help="14 digits, or 15 with the check digit.")
@click.option("--uuid", default="", metavar="UUID", help="The device's; else made from the IMEI.")
@click.option("--dialect", default="", metavar="NAME", help="at-host, serial-modem or shell.")
@click.option("--terminator", default="cr", metavar="NAME", help="cr (usual), lf, crlf or null.")
@click.option("--fault", "faults", multiple=True, metavar="NAME[=ARG]", help="help lists them.")
@click.option("--state", metavar="FILE", help="Keep the kit's flash in FILE (0600).")
@click.option("--instant", is_flag=True, help="Without the delays of a real modem.")
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
def command(
    pty: str | None,
    tcp: str | None,
    console: str | None,
    companion: str | None,
    allow_remote: bool,
    state: str | None,
    cmd: tuple[str, ...],
    **kit: object,
) -> None:
    """Serve a virtual nRF91: it boots as a fresh kit does and keeps what it is told.

    Prints {"ready":true,"port":…} and serves until it is told to stop. With `-- CMD…` it runs CMD
    with CELLAGENT_PORT set, and ends with CMD's exit code.
    """
    from at.virtual.options import Options

    faults = kit["faults"]
    assert isinstance(faults, tuple)
    if "help" in faults:
        _list_faults()
        return
    if (pty is None) == (tcp is None):
        raise UsageError("say where to serve: either --pty PATH or --tcp HOST:PORT")
    places = Places(pty, tcp, console, companion, allow_remote)
    run(_serve(Options(**kit), places, state, cmd))  # type: ignore[arg-type]


async def _serve(
    kit: Options,
    places: Places,
    state: str | None,
    cmd: tuple[str, ...],
) -> int:
    from contextlib import AsyncExitStack

    from agent.cli.serving import until_told_to_stop
    from at.virtual.modem import Port
    from at.virtual.options import OptionError
    from at.virtual.serving import Runner, make_modem

    try:
        modem = make_modem(kit, state, console_apart=places.console is not None)
    except OptionError as error:
        raise UsageError(str(error), hint=error.hint) from error
    runner = Runner(modem, state)
    async with AsyncExitStack() as stack:
        stack.callback(runner.stop)
        if places.tcp is not None:
            from at.virtual.tcp_server import TcpServer

            server = TcpServer(runner.receive)
            stack.push_async_callback(server.close)
            await server.listen(*_address(places.tcp, places.allow_remote))
            runner.attach(Port.AT, server.send)
            port = server.port
        else:
            assert places.pty is not None
            port = places.pty
            runner.attach(Port.AT, _terminal(stack, port, runner.receive))
        ready = {"ready": True, "port": port}
        if places.console is not None:
            sends = _terminal(stack, places.console, runner.receive_console)
            runner.attach(Port.CONSOLE, sends)
            ready["console"] = places.console
        if places.companion is not None:
            sends = _terminal(stack, places.companion, runner.receive_companion)
            runner.companion_sends = sends
            ready["companion"] = places.companion
        runner.start()
        emit(ready)
        return await until_told_to_stop(cmd, {"CELLAGENT_PORT": port})


def _terminal(
    stack: AsyncExitStack, path: str, received: Callable[[bytes], None]
) -> Callable[[bytes], None]:
    from at.virtual.pty_server import PtyServer

    terminal = PtyServer(path, received)
    stack.callback(terminal.close)
    return terminal.send


def _address(text: str, allow_remote: bool) -> tuple[str, int]:
    from at.virtual.tcp_server import is_loopback

    host, colon, port = text.removeprefix("tcp://").rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"not HOST:PORT: {text!r}")
    host = host.strip("[]") or "127.0.0.1"
    if not is_loopback(host) and not allow_remote:
        raise RefusedByRule(
            f"{host} is reached from other machines", hint="add --allow-remote if you mean it"
        )
    return host, int(port)


def _list_faults() -> None:
    from at.virtual.faults import FAULTS

    for name, fault in FAULTS.items():
        if options().json:
            emit({"fault": name, "default": fault.default, "description": fault.description})
        else:
            shown = name if fault.default is None else f"{name}={fault.default}"
            say(f"{shown:34}  {fault.description}")
