"""`cellagent run`: the agent, for months."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from typing import TYPE_CHECKING

import click

from agent.cli.shell.command import AgentCommand, emit, options, run, say

if TYPE_CHECKING:
    from agent.config import Configuration

_log = logging.getLogger(__name__)


@click.command(
    cls=AgentCommand,
    epilog="Example: cellagent run --port /dev/ttyACM0; then, elsewhere: cellagent status --watch",
)
@click.option("--print-unit", is_flag=True, help="Print a hardened systemd unit, and end.")
@click.option("--print-udev", is_flag=True, help="Print a udev rule that keeps ModemManager off.")
def command(*, print_unit: bool, print_udev: bool) -> None:
    """Look after the kits of the profile until told to stop: position, updates, crashes, console.

    It outlives unplugging, resets and services that are away, says once what is wrong, and catches
    up. SIGHUP, or `cellagent reload`, reads the profile again; SIGTERM, or the end of the terminal
    that it was started on, ends it within 5 s. With --json it prints one line when it is ready, and
    then one at each change.
    """
    if print_unit or print_udev:
        _print("cellagent.service" if print_unit else "60-cellagent.rules")
        return
    from agent.cli.shell.logs import log_of_the_agent

    log_of_the_agent(options().verbosity)
    run(_agent())


async def _agent() -> int:
    from agent.daemon.agent import Agent

    agent = Agent(_configure)
    told = _signals(agent)
    watching: asyncio.Task[None] | None = None

    def ready() -> None:
        nonlocal watching
        names = {name: kit.kit.port for name, kit in agent.kits.items()}
        if options().json:
            emit({"ready": True, "profile": agent.configuration.name, "kits": names})
            watching = asyncio.ensure_future(_tell_changes(agent))
        else:
            shown = ", ".join(f"{name} on {port}" for name, port in names.items())
            _log.info("profile %s: %s", agent.configuration.name, shown)
            _log.info("it runs; elsewhere: `cellagent status --watch`. Ctrl-C ends it")

    try:
        await agent.run(ready)
    finally:
        if watching is not None:
            watching.cancel()
    return 130 if told.get("number") == signal.SIGINT else 0


async def _tell_changes(agent: object) -> None:
    """Print a line at each change of a concern's state."""
    from agent.daemon.agent import Agent

    assert isinstance(agent, Agent)
    before: dict[tuple[str, str], tuple[str, str]] = {}
    while True:
        for each in list(agent.board.concerns):
            now = (each.state.value, each.trouble)
            if before.get((each.kit, each.name)) != now:
                before[each.kit, each.name] = now
                emit(
                    {
                        "kit": each.kit or None,
                        "concern": each.name,
                        "state": now[0],
                        "trouble": now[1] or None,
                        "try": each.hint or None,
                    }
                )
        await agent.board.changed()


def _signals(agent: object) -> dict[str, int]:
    """Have SIGTERM, Ctrl-C and the end of its terminal stop the agent, another SIGHUP reload it.

    Returns who told it to stop.
    """
    from agent.daemon.agent import Agent
    from agent.errors import AgentError

    assert isinstance(agent, Agent)
    loop = asyncio.get_running_loop()
    told: dict[str, int] = {}
    reloads: set[asyncio.Task[None]] = set()

    def stop(number: int) -> None:
        told["number"] = number
        agent.stop()

    async def reload() -> None:
        try:
            await agent.reload()
        except AgentError as error:
            way_out = f"; try: {error.hint}" if error.hint else ""
            _log.error("the profile is not used, the agent goes on as before: %s%s", error, way_out)

    on_terminal = sys.stdin.isatty()

    def hang_up() -> None:
        if on_terminal and not sys.stdin.isatty():
            stop(signal.SIGHUP)  # its window was closed: nobody asks it to reload
            return
        task = asyncio.ensure_future(reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    # Windows has no handlers on the loop: there Ctrl-C arrives as KeyboardInterrupt.
    with contextlib.suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGTERM, stop, signal.SIGTERM)
        loop.add_signal_handler(signal.SIGINT, stop, signal.SIGINT)
        loop.add_signal_handler(signal.SIGHUP, hang_up)
    return told


def _configure() -> Configuration:
    """Return the configuration; where it names no kit, the only one that is plugged in."""
    from dataclasses import replace

    import msgspec

    from agent.cli.shell.session import configured, only_kit_port
    from agent.config import load

    given = options()
    configuration = configured() if given.port else load(given.profile)
    profile = configuration.profile
    if profile.kits and given.port:
        # A port on the command line means that kit alone.
        profile = msgspec.structs.replace(profile, kits={})
    if not profile.kits and not profile.kit.port:
        kit = msgspec.structs.replace(profile.kit, port=only_kit_port())
        profile = msgspec.structs.replace(profile, kit=kit)
    return replace(configuration, profile=profile)


def _print(name: str) -> None:
    from importlib.resources import files

    say((files("agent.daemon") / "packaging" / name).read_text("utf-8").rstrip())
