"""`cellagent modem virtual`: a stateful nRF91 on a PTY or a TCP port."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.framework.command import agent_command, emit, emit_or_say, say
from agent.cli.modem.serve_port import require_one, serve_port, serve_terminal
from agent.errors import UsageError
from at.virtual.options import OptionError, VirtualOptions

if TYPE_CHECKING:
    from agent.cli.framework.session import Session
    from at.virtual.kit import VirtualKit


@dataclass(frozen=True, slots=True)
class ServedPorts:
    """The addresses of the kit's ports: paths of terminals, or HOST:PORT."""

    pty: str | None
    tcp: str | None
    console: str | None
    companion: str | None
    allow_remote: bool


@agent_command("cellagent modem virtual --pty /tmp/kit -- picocom /tmp/kit")
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
@click.option(
    "--identity-key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the public key that signs what the kit attests to FILE (PEM).",
)
@click.option("--instant", is_flag=True, help="Without the delays of a real modem.")
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
async def command(
    session: Session,
    pty: str | None,
    tcp: str | None,
    console: str | None,
    companion: str | None,
    allow_remote: bool,
    state: str | None,
    identity_key: Path | None,
    cmd: tuple[str, ...],
    **kit: Any,
) -> int:
    """Serve a virtual nRF91: it boots as a fresh kit does and keeps its settings.

    Prints {"ready":true,"port":…} and serves until SIGTERM or Ctrl-C. With `-- CMD…` it runs CMD
    with CELLAGENT_PORT set, and ends with CMD's exit code.
    """
    if "help" in kit["faults"]:
        _list_faults(session)
        return 0
    require_one(pty, tcp)
    ports = ServedPorts(pty, tcp, console, companion, allow_remote)
    return await _serve(VirtualOptions(**kit), ports, state, identity_key, cmd)


async def _serve(
    kit: VirtualOptions,
    ports: ServedPorts,
    state: str | None,
    identity_key: Path | None,
    cmd: tuple[str, ...],
) -> int:
    from agent.cli.framework.signals import serve_until_stopped
    from at.virtual.modem import Port
    from at.virtual.server.runner import ModemRunner, make_modem
    from at.virtual.state import StateFile

    async with AsyncExitStack() as stack:
        flash = None
        if state is not None:
            flash = StateFile(state)
            stack.callback(flash.release)
        try:
            modem = make_modem(kit, flash, console_apart=ports.console is not None)
        except OptionError as error:
            raise UsageError(str(error), hint=error.hint) from error
        runner = ModemRunner(modem, flash)
        stack.callback(runner.stop)
        served = await serve_port(
            stack, runner.receive, pty=ports.pty, tcp=ports.tcp, allow_remote=ports.allow_remote
        )
        runner.attach(Port.AT, served.send)
        ready = {"ready": True, "port": served.port}
        if ports.console is not None:
            console = serve_terminal(stack, ports.console, runner.receive_console)
            runner.attach(Port.CONSOLE, console.send)
            ready["console"] = ports.console
        if ports.companion is not None:
            companion = serve_terminal(stack, ports.companion, runner.receive_companion)
            runner.companion_sends = companion.send
            ready["companion"] = ports.companion
        if identity_key is not None:
            _write_identity_key(modem.kit, identity_key)
        runner.start()
        emit(ready)
        return await serve_until_stopped(cmd, {"CELLAGENT_PORT": served.port})


def _write_identity_key(kit: VirtualKit, file: Path) -> None:
    from agent.config.private_files import replacing
    from at.virtual.signing import identity_key, public_pem

    with replacing(file, private=False) as opened:
        opened.write(public_pem(identity_key(kit)).encode("ascii"))


def _list_faults(session: Session) -> None:
    from at.virtual.faults import FAULTS, written

    if not session.json:
        say("--fault NAME[=ARG]; ARG is usually:\n")
    for name, fault in FAULTS.items():
        takes = f"; ARG: {fault.takes}" if fault.takes else ""
        emit_or_say(
            session,
            {"fault": name, "default": fault.default, "description": fault.description},
            f"{written(name, fault):34}  {fault.description}{takes}",
        )
