"""`cellagent cloud`: the stand-in for both services, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli.frame import AgentGroup, emit, run, say
from agent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from agent.standin.state import Cloud


@click.group(cls=AgentGroup, name="cloud")
def command() -> None:
    """Stand in for both services, on loopback: no account, no internet."""


@command.command(context_settings={"ignore_unknown_options": False})
@click.option(
    "--listen",
    default="127.0.0.1:0",
    metavar="HOST:PORT",
    show_default=True,
    help="Where to listen; port 0 means a free one. Anything but loopback is your own risk.",
)
@click.option("--split", is_flag=True, help="A port for each host; each refuses others' routes.")
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
    metavar="NAME[=ARG]",
    help="Spoil answers from the start; `--fault help` lists the names.",
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
def serve(
    listen: str,
    split: bool,
    state: Path | None,
    devices: int,
    faults: tuple[str, ...],
    program: tuple[str, ...],
) -> None:
    r"""Serve the device cloud and the observability service until told to stop.

    Prints one line of JSON once it is ready: the URLs, the slugs and made-up credentials. With
    a command after `--`, runs it, and ends with its exit code.

    \b
    Example:
      cellagent cloud serve --listen 127.0.0.1:8080
      cellagent cloud serve -- pytest tests/
    """
    if "help" in faults:
        _list_faults()
        return
    host, port = _address(listen)
    run(_serve(host, port, split, state, devices, faults, program))


async def _serve(
    host: str,
    port: int,
    split: bool,
    state: Path | None,
    devices: int,
    faults: tuple[str, ...],
    program: tuple[str, ...],
) -> int:
    from agent.standin import serve as server
    from agent.standin.credentials import credentials
    from agent.standin.faults import install
    from agent.standin.state import ORGANIZATION, PROJECT, open_cloud

    stop = asyncio.Event()
    cloud = open_cloud(state, devices=devices)
    try:
        install(cloud, faults)
    except ValueError as error:
        raise UsageError(str(error), hint="`--fault help` lists the names") from error
    with tempfile.TemporaryDirectory(prefix="cellagent-cloud-") as folder, _signals(stop):
        keys = state.parent / f"{state.name}.keys" if state else Path(folder)
        async with _listening(server.serving(cloud, host=host, port=port, split=split), host, port):
            emit(
                {
                    "ready": True,
                    "urls": cloud.urls,
                    "organization": ORGANIZATION,
                    "project": PROJECT,
                    "team_id": cloud.team_id,
                    "credentials": credentials(cloud, keys),
                }
            )
            if program:
                return await _run_program(program, stop)
            await stop.wait()
    return 0


@contextlib.asynccontextmanager
async def _listening(
    serving: contextlib.AbstractAsyncContextManager[Cloud], host: str, port: int
) -> AsyncIterator[None]:
    try:
        await serving.__aenter__()
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another port, or 0 for a free one",
        ) from error
    try:
        yield
    finally:
        await serving.__aexit__(None, None, None)


@contextlib.contextmanager
def _signals(stop: asyncio.Event):  # type: ignore[no-untyped-def]
    """Turn SIGINT and SIGTERM into `stop`, for as long as the block lasts."""
    loop = asyncio.get_running_loop()
    taken = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in taken:
            loop.add_signal_handler(number, stop.set)
    except NotImplementedError:
        yield  # Windows: Ctrl-C cancels the task, which ends the server as well
        return
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


async def _run_program(program: Sequence[str], stop: asyncio.Event) -> int:
    """Run CMD and return its exit code; being told to stop ends it first."""
    try:
        process = await asyncio.create_subprocess_exec(*program, env=dict(os.environ))
    except OSError as error:
        raise UsageError(f"cannot run {program[0]}: {error.strerror}") from error
    ended = asyncio.create_task(process.wait())
    told = asyncio.create_task(stop.wait())
    await asyncio.wait({ended, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not ended.done():
        process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(ended), 5)
        except TimeoutError:
            process.kill()
    code = await ended
    return 128 - code if code < 0 else code


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text}: not HOST:PORT", hint="for example 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def _list_faults() -> None:
    from agent.standin.faults import describe

    for name, text in describe().items():
        say(f"{name:20} {text}")
