"""`cellagent modem virtual`: a stateful nRF91 or nRF93M1 on a PTY or a TCP port."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.framework.candidates import completing
from agent.cli.framework.command import OfflineCommand, agent_command, emit, emit_or_say, say
from agent.cli.framework.terminal import wrapped
from agent.cli.modem.serve_port import ALLOW_REMOTE, CMD, PTY, TCP, require_one, serve_port
from agent.errors import RefusedByRule, UsageError
from at.virtual.options import MODELS, OptionError, VirtualOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.cli.framework.session import Session
    from at.virtual.kit import VirtualKit


@dataclass(frozen=True, slots=True)
class KitPlaces:
    """Where one kit is served and kept: paths, or HOST:PORT."""

    pty: str | None
    tcp: str | None
    console: str | None
    companion: str | None
    state: str | None
    identity_key: str | None

    def numbered(self, number: int) -> KitPlaces:
        """Return the places of kit `number` of many: /tmp/kit-1, kit-1.json, a port further on."""

        def path(text: str | None) -> str | None:
            return text and str(Path(text).with_stem(f"{Path(text).stem}-{number}"))

        return KitPlaces(
            path(self.pty),
            self.tcp and _port_further(self.tcp, number - 1),
            path(self.console),
            path(self.companion),
            path(self.state),
            path(self.identity_key),
        )

    @property
    def name(self) -> str:
        """What makes the kit another than the next, the same each time; "" where nothing does."""
        if self.pty is not None:
            return str(Path(self.pty).absolute())
        return "" if self.tcp is None or self.tcp.endswith(":0") else self.tcp


def _port_further(address: str, distance: int) -> str:
    host, colon, port = address.rpartition(":")
    further = port.isdecimal() and int(port)  # 0 is any that is free, for every kit
    return f"{host}:{int(port) + distance}" if colon and further else address


def _faults() -> Iterable[str]:
    from at.virtual.faults import FAULTS

    return FAULTS


@agent_command("cellagent modem virtual --pty /tmp/kit -- picocom /tmp/kit", OfflineCommand)
@PTY
@TCP
@click.option("--console", metavar="PATH", help="A terminal for the application's console.")
@click.option("--companion", metavar="PATH", help="A terminal for an ESP-AT that scans Wi-Fi.")
@ALLOW_REMOTE
@click.option(
    "--model",
    default="",
    metavar="MODEL",
    shell_complete=completing(lambda: MODELS),
    help="nrf9160, nrf9161 (usual), nrf9151 or nrf93m1.",
)
@click.option(
    "--firmware", default="", metavar="V", help="1.3.7, mfw_nrf9160_1.3.7, serial-modem-2.0.0."
)
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="Serve N kits: PATH-1 to PATH-N."
)
@click.option("--imei", default="", metavar="N", help="14 digits, or 15 with the check digit.")
@click.option("--uuid", default="", metavar="UUID", help="The device's; else made from the IMEI.")
@click.option("--dialect", default="", metavar="NAME", help="The docs list them by model.")
@click.option("--terminator", default="cr", metavar="NAME", help="cr (usual), lf, crlf or null.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[=ARG]",
    shell_complete=completing(_faults),
    help="help lists them.",
)
@click.option("--state", metavar="FILE", help="Keep the kit's flash in FILE (0600).")
@click.option(
    "--identity-key",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the public key that signs what the kit attests to FILE (PEM).",
)
@click.option(
    "--provisioning", default="", metavar="URL", help="Whose commands #XNRFPROV takes: loopback."
)
@click.option("--instant", is_flag=True, help="Without the delays of a real modem.")
@CMD
async def command(
    session: Session,
    pty: str | None,
    tcp: str | None,
    console: str | None,
    companion: str | None,
    allow_remote: bool,
    count: int | None,
    state: str | None,
    identity_key: str | None,
    cmd: tuple[str, ...],
    **kit: Any,
) -> int:
    """Serve a virtual nRF91 or nRF93M1: it boots as a fresh kit does and keeps its settings.

    Prints {"ready":true,"port":...}, with --count {"ready":true,"ports":[...]}, and serves until
    SIGTERM or Ctrl-C. With `-- CMD...` it runs CMD with CELLAGENT_PORT set, to the first port, and
    ends with CMD's exit code.
    """
    if "help" in kit["faults"]:
        _list_faults(session)
        return 0
    require_one(pty, tcp)
    places = KitPlaces(pty, tcp, console, companion, state, identity_key)
    if count is None:
        kits = [(replace(VirtualOptions(**kit), name=places.name), places)]
    else:
        kits = _numbered_kits(VirtualOptions(**kit), places, count)
    return await _serve(kits, cmd, allow_remote=allow_remote, many=count is not None)


def _numbered_kits(
    options: VirtualOptions, places: KitPlaces, count: int
) -> list[tuple[VirtualOptions, KitPlaces]]:
    """Return the options and places of each kit. Raises UsageError."""
    if options.uuid:
        raise UsageError(
            f"{count} kits cannot have one UUID",
            hint="leave out --uuid: each kit has one of its own",
        )
    kits = []
    for number in range(1, count + 1):
        own = places.numbered(number)
        imei = options.imei
        if imei[:14].isdecimal():
            imei = f"{(int(imei[:14]) + number - 1) % 10**14:014}"
        name = own.name or f"number {number}"
        kits.append((replace(options, imei=imei, name=name), own))
    return kits


async def _serve(
    kits: list[tuple[VirtualOptions, KitPlaces]],
    cmd: tuple[str, ...],
    *,
    allow_remote: bool,
    many: bool,
) -> int:
    from agent.cli.framework.signals import serve_until_stopped

    async with AsyncExitStack() as stack:
        served = [
            await _serve_kit(stack, options, places, allow_remote=allow_remote)
            for options, places in kits
        ]
        if many:
            emit({"ready": True, **{f"{key}s": [kit[key] for kit in served] for key in served[0]}})
        else:
            emit({"ready": True, **served[0]})
        return await serve_until_stopped(cmd, {"CELLAGENT_PORT": served[0]["port"]})


async def _serve_kit(
    stack: AsyncExitStack, options: VirtualOptions, places: KitPlaces, *, allow_remote: bool
) -> dict[str, str]:
    """Serve one kit until `stack` unwinds; return its ports by name."""
    from at.virtual.modem import Port
    from at.virtual.server.pty import serve_terminal
    from at.virtual.server.runner import ModemRunner, make_modem
    from at.virtual.state import StateFile

    flash = None
    if places.state is not None:
        flash = StateFile(places.state)
        stack.callback(flash.release)
    try:
        modem = make_modem(options, flash, console_apart=places.console is not None)
    except OptionError as error:
        raise UsageError(str(error), hint=error.hint) from error
    runner = ModemRunner(modem, flash)
    stack.callback(runner.stop)
    at = await serve_port(
        stack, runner.receive, pty=places.pty, tcp=places.tcp, allow_remote=allow_remote
    )
    runner.attach(Port.AT, at.send)
    served = {"port": at.port}
    for port, link in ((Port.CONSOLE, places.console), (Port.COMPANION, places.companion)):
        if link is not None:
            terminal = serve_terminal(stack, link, partial(runner.receive, port=port))
            runner.attach(port, terminal.send)
            served[port.value] = terminal.port
    if places.identity_key is not None:
        _write_identity_key(modem.kit, Path(places.identity_key))
    runner.start()
    return served


def _write_identity_key(kit: VirtualKit, file: Path) -> None:
    from agent.files.private_files import output_file
    from at.virtual.signing import identity_key, public_pem

    # Also who takes the option for one that reads a key, and names that of a real kit.
    if file.is_file() and not file.read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----"):
        raise RefusedByRule(
            f"{file} exists already, and is no public key",
            hint="nothing is overwritten: name another file, to which the key is written",
        )
    with output_file(file, private=False) as opened:
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
            *wrapped(fault.description + takes, f"{written(name, fault):34}  ", " " * 36),
        )
