"""`cellagent cloud`: the stand-in for both services, on loopback."""

import contextlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from agent.cli.framework.candidates import completing
from agent.cli.framework.command import OfflineGroup, emit, emit_or_say, note, say
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import wrapped
from agent.config.standin_profile import write_standin_profile
from agent.config.urls import host_and_port, is_loopback
from agent.errors import UsageError
from agent.extras import STANDIN, require
from agent.files.temporary_folder import temporary_folder

_T = TypeVar("_T")


def _faults() -> Iterable[str]:
    from agent.standin.fault_kinds import FAULTS

    return FAULTS


@click.group(cls=OfflineGroup, name="cloud")
def command() -> None:
    """Simulate both services, on loopback: no account, no internet."""


@command.command(epilog="Example: cellagent cloud serve -- pytest tests/")
@click.option(
    "--listen",
    default="127.0.0.1:0",
    metavar="HOST:PORT",
    show_default=True,
    help="Where to listen; port 0 means a free one.",
)
@click.option("--split", is_flag=True, help="A port for each host; each refuses others' routes.")
@click.option(
    "--strict",
    is_flag=True,
    help="As --split, and what devices and builds push is refused at `api`, too.",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the state in this SQLite file; without it, in memory.",
)
@click.option(
    "--devices",
    type=click.IntRange(0, 1_000_000),
    default=0,
    metavar="N",
    help="Add a made-up fleet of N devices.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[=ARG][*TIMES][@ROUTE]",
    shell_complete=completing(_faults),
    help="Inject faults from the start, such as `latency=2@/v1/*`; `--fault help` explains them.",
)
@click.option(
    "--write-profile",
    "profile",
    metavar="NAME",
    help="Write a profile of that name, secrets 0600, for the other commands.",
)
@click.option(
    "--connect-proxy",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Also end TLS for the public services' hosts, on this port of loopback (0: a free one).",
)
@click.option(
    "--ca-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT",
    help="Where the proxy's CA certificate goes; its clients trust it.",
)
@click.option(
    "--connect-host",
    "connect_hosts",
    multiple=True,
    metavar="NAME[=HOST]",
    help="One more name that the proxy answers for, and which of the hosts it means.",
)
@click.option(
    "--pending-commands",
    is_flag=True,
    help="Leave the commands of claimed devices pending: by default the stand-in answers them "
    "in the device's place.",
)
@click.option("--allow-remote", is_flag=True, help="Listen on an address that is no loopback.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
async def serve(
    session: Session,
    listen: str,
    program: tuple[str, ...],
    allow_remote: bool,
    faults: tuple[str, ...],
    **settings: object,
) -> int:
    """Serve the device cloud and the observability service until SIGTERM or Ctrl-C.

    Prints one line of JSON once it is ready: the URLs, the slugs and made-up credentials; on a
    terminal, without --json, a summary without secrets. With a command after `--` it runs that
    with CELLAGENT_PROFILE set, and ends with its exit code.
    """
    require("the stand-in cloud", *STANDIN)
    if asked := session.port:
        session.port = None  # not for the hint
        where = f"127.0.0.1:{asked}" if asked.isdecimal() else "HOST:PORT"
        raise UsageError(
            "--port names a kit; where the stand-in listens is named by --listen",
            hint=f"`cellagent cloud serve --listen {where}`",
        )
    if "help" in faults:
        _list_faults(session)
        return 0
    host, port = _address(listen, remote=allow_remote)
    values = {**settings, "host": host, "port": port, "program": program, "faults": faults}
    given = msgspec.convert(values, _ServeOptions)
    proxy = given.connect_proxy is not None, given.ca_file is not None
    if not all(proxy) and any((*proxy, given.connect_hosts)):
        raise UsageError(
            "--connect-proxy and --ca-file go together, --connect-host only with them",
            hint="`--connect-proxy 0 --ca-file ca.pem` serves the proxy",
        )
    return await _serve(session, given)


@dataclass(frozen=True, slots=True)
class _ServeOptions:
    """The values of the options of `serve`."""

    host: str
    port: int
    split: bool
    strict: bool
    state: Path | None
    devices: int
    faults: tuple[str, ...]
    profile: str | None
    connect_proxy: int | None
    ca_file: Path | None
    connect_hosts: tuple[str, ...]
    pending_commands: bool
    program: tuple[str, ...]


async def _serve(session: Session, given: _ServeOptions) -> int:
    from agent.cli.framework.signals import HANG_UP, first_signal, not_ignored, run_program
    from agent.standin.faults import set_faults
    from agent.standin.ready_line import ready_line
    from agent.standin.serve import serving
    from agent.standin.state import open_cloud

    try:
        cloud = open_cloud(given.state, devices=given.devices)
    except ValueError as error:
        raise UsageError(str(error), hint="name another file for --state") from error
    cloud.settings.play_claimed_devices = not given.pending_commands
    try:
        set_faults(cloud, given.faults)
    except ValueError as error:
        raise UsageError(str(error), hint="`--fault help` shows how they are written") from error
    async with contextlib.AsyncExitStack() as opened:
        ending = (signal.SIGINT, signal.SIGTERM, *not_ignored(HANG_UP))
        stopped = opened.enter_context(first_signal(*ending))

        def temporary() -> Path:
            return opened.enter_context(temporary_folder("cellagent-cloud"))

        if given.state:  # whole, for a profile is read from any folder
            keys = given.state.absolute().with_name(f"{given.state.name}.keys")
        else:
            keys = temporary()
        address = f"{given.host}:{given.port}"
        serve = serving(
            cloud, host=given.host, port=given.port, split=given.split, strict=given.strict
        )
        await _start(opened, serve, address, "--listen 127.0.0.1:0")
        ready = ready_line(cloud, keys)
        if given.connect_proxy is not None and given.ca_file is not None:
            from agent.standin.connect_proxy import connect_proxy

            proxy = connect_proxy(cloud, given.connect_proxy, given.ca_file, given.connect_hosts)
            address = f"127.0.0.1:{given.connect_proxy}"
            port = await _start(opened, proxy, address, "--connect-proxy 0")
            note(f"proxy for unmodified tools: HTTPS_PROXY=http://127.0.0.1:{port}")
        environment = _profile(given, ready, temporary)
        if session.json or not sys.stdout.isatty():
            emit(ready)
        else:
            say("\n".join(_summary(given, ready)))
        if given.program:
            # Ctrl-C reaches the program as well: SIGTERM ends a program that ignores it.
            return await run_program(given.program, environment, stopped, sends=signal.SIGTERM)
        await stopped
    return 0


def _summary(given: _ServeOptions, ready: dict[str, Any]) -> Iterator[str]:
    """Yield what a person is shown in place of the line: no secret, and what to try."""
    urls = sorted(set(ready["urls"].values()))
    yield f"a stand-in for both services, on this machine alone: {' '.join(urls)}"
    yield f"organization {ready['organization']}, project {ready['project']}"
    if given.program:
        yield f"{given.program[0]} uses it; with its end the stand-in ends"
        return
    if given.profile is None:
        yield "`--json` prints its secrets, `--write-profile standin` keeps them in a profile"
    else:
        yield f"elsewhere: `cellagent device list --profile {shlex.quote(given.profile)}`"
    yield "Ctrl-C ends it"


def _profile(
    given: _ServeOptions, ready: dict[str, Any], temporary: Callable[[], Path]
) -> dict[str, str]:
    """Write the profile, a temporary one for CMD alone; return the environment of CMD."""
    if given.profile is None and not given.program:
        return {}
    if given.profile is not None:
        path = write_standin_profile(given.profile, ready)
        note(f"profile {given.profile} written to {path}")
        return {"CELLAGENT_PROFILE": given.profile}
    # No --write-profile: CMD gets one that is deleted with the folder.
    path = write_standin_profile("standin", ready, file=temporary() / "config.toml")
    return {"CELLAGENT_PROFILE": "standin", "CELLAGENT_CONFIG": str(path)}


async def _start(
    opened: contextlib.AsyncExitStack,
    serving: contextlib.AbstractAsyncContextManager[_T],
    address: str,
    any_port: str,
) -> _T:
    """Start a server that ends with `opened`; the option `any_port` takes another address.

    Raises UsageError if it cannot listen.
    """
    try:
        return await opened.enter_async_context(serving)
    except OSError as error:
        if error.filename is not None:
            raise UsageError(f"cannot write {error.filename}: {error.strerror}") from error
        raise UsageError(
            f"cannot listen on {address}: {error.strerror}", hint=f"`{any_port}` takes a free port"
        ) from error
    except ValueError as error:
        raise UsageError(str(error)) from error


def _address(text: str, *, remote: bool) -> tuple[str, int]:
    host, port = host_and_port(text, "--listen")
    if not remote and not is_loopback(host):
        raise UsageError(
            f"--listen {text}: not an address of loopback",
            hint="`--allow-remote` listens there, for whoever can reach this machine",
        )
    return "127.0.0.1" if host == "localhost" else host, port


def _list_faults(session: Session) -> None:
    from agent.standin.fault_grammar import EXAMPLE, GRAMMAR, PARTS
    from agent.standin.fault_kinds import FAULTS

    if not session.json:
        say(f"--fault {GRAMMAR}")
        for part, text in PARTS.items():
            for line in wrapped(text, f"  {part:6} "):
                say(line)
        say(f"Example: --fault '{EXAMPLE}'\n")
    for name, kind in FAULTS.items():
        default = kind.argument.default if kind.argument else None
        takes = kind.argument.words if kind.argument else None
        shown = f"{name}={default}" if default else name
        text = kind.help + (f" ARG: {takes}." if takes else "")
        emit_or_say(
            session,
            {"fault": name, "argument": takes, "default": default, "description": kind.help},
            *wrapped(text, f"{shown:36} ", " " * 37),
        )
