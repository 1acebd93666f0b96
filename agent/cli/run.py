"""`cellagent run`: the agent, for months."""

from __future__ import annotations

import asyncio
import logging
import shlex
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from agent.cli import EXIT_INTERRUPTED
from agent.cli.framework.command import agent_command, discard_output, emit, emit_or_say
from agent.cli.framework.logs import log_of_the_agent, takes_more
from agent.cli.framework.session import Session
from agent.cli.framework.signals import HANG_UP, handle_signals
from agent.cli.page import DEFAULT_LISTEN, page_settings, served_page, show_link
from agent.errors import AgentError, UsageError, with_hint
from agent.files.paths import named_path
from agent.tasks import cancel_and_wait
from at.ports.usb import same_port

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from agent.config import Configuration
    from agent.config.profile import PageSettings
    from agent.daemon.agent import Agent

_log = logging.getLogger(__name__)


@agent_command("cellagent run --port /dev/ttyACM0")
@click.option(
    "--page",
    "listen",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value="",
    help=f"Serve the live page. Without HOST:PORT: page.listen, else {DEFAULT_LISTEN}.",
)
@click.option("--print-unit", is_flag=True, help="Print a hardened systemd unit, and end.")
@click.option("--print-udev", is_flag=True, help="Print a udev rule that keeps ModemManager off.")
def command(
    session: Session, *, listen: str | None, print_unit: bool, print_udev: bool
) -> Coroutine[None, None, int] | None:
    """Look after the kits of the profile until stopped: position, updates, crashes, console.

    It survives unplugging, resets and outages of the services, logs each trouble once, and catches
    up. SIGHUP, or `cellagent reload`, reads the profile again; SIGTERM, or the end of the terminal
    that it was started on, ends it within 5 s. With --json it prints one line when it is ready, and
    then one at each change. `cellagent status --watch` shows elsewhere what it does.
    """
    if print_unit or print_udev:
        _print(session, "unit" if print_unit else "rule")
        return None

    page_settings(session.loaded, listen)  # what it lacks is told before anything is opened
    log_of_the_agent(session.verbosity)  # before the event loop, which logs already
    return _agent(session, listen)


async def _agent(session: Session, listen: str | None) -> int:
    from agent.daemon.agent import Agent

    by_name = session.port in session.loaded.profile.kits
    # A session for each time that the profile is read.
    agent = Agent(lambda: _configure(replace(session), by_name=by_name))
    received = _handle_signals(agent)
    watching: asyncio.Task[None] | None = None

    def ready() -> None:
        nonlocal watching
        names = {name: kit.settings.port for name, kit in agent.kits.items()}
        if session.json:
            emit({"ready": True, "profile": agent.configuration.name, "kits": names})
            watching = asyncio.ensure_future(_emit_changes(agent))
        else:
            shown = ", ".join(f"{name} on {port}" for name, port in names.items())
            _log.info("profile %s: %s", agent.configuration.name, shown)
            _log.info("it runs; elsewhere: `cellagent status --watch`. Ctrl-C ends it")
        if left_out := _left_out(agent.configuration):
            _log.warning("%s", left_out)
        if agent.page_link is not None and sys.stdout.isatty():
            show_link(session, agent.page_link())

    page = _PageBeside(agent, listen)
    try:
        await page.serve(agent.configuration)
        agent.serve_page = page.serve
        await agent.run(ready)
    finally:
        await page.close()
        if watching is not None:
            await cancel_and_wait(watching)
    return EXIT_INTERRUPTED if signal.SIGINT in received[-1:] else 0


def _left_out(configuration: Configuration) -> str:
    """Say that the kit on `kit.port` is none of the table, "" where it is, or where none is."""
    profile, origin = configuration.profile, configuration.origins["kit.port"]
    named_by = origin.where if origin.kind == "environment" else "kit.port"
    port = profile.kit.port
    if (
        not port
        or not profile.kits
        or any(same_port(one.port, port) for one in profile.kits.values())
    ):
        return ""
    add = shlex.join(
        ["cellagent", "config", "set", "kits.NAME.port", port, "--profile", configuration.name]
    )
    return with_hint(
        f"the kit on {named_by}, {port}, is not looked after: the profile has a table of kits, and "
        "none there is on it",
        f"`{add}` adds it",
    )


class _PageBeside:
    """The page beside an agent, which is served anew where its keys or its certificate change."""

    def __init__(self, agent: Agent, listen: str | None) -> None:
        self._agent = agent
        self._listen = listen
        self._served: tuple[Configuration, PageSettings, bytes] | None = None
        self._stack = AsyncExitStack()

    async def serve(self, configuration: Configuration) -> None:
        """Serve the page of a configuration, if it has one.

        Raises AgentError; what was served before is served on then.
        """
        settings = page_settings(configuration, self._listen)
        before = self._served
        wanted = configuration, settings, _content(settings)
        if before is not None and before[1:] == wanted[1:]:
            return
        if settings.listen:
            from agent.page.server import require_certificate

            require_certificate(settings)
        await self.close()  # first: it may be the same address
        try:
            await self._open(configuration, settings)
        except AgentError:
            if before is not None:
                await self._open(*before[:2])
            raise
        self._served = wanted

    async def _open(self, configuration: Configuration, settings: PageSettings) -> None:
        if settings.listen:
            # A reload, which has no such option, takes over the address of the profile alone.
            of_profile = "cellagent config set page.listen"
            serves = served_page(
                configuration, settings, chosen_by=of_profile if self._listen is None else "--page"
            )
            page = await self._stack.enter_async_context(serves)
            self._agent.page_link = page.link
            _log.info("the page is at %s; a link to it: `cellagent page`", page.url)

    async def close(self) -> None:
        """Serve no page any more."""
        self._agent.page_link = None
        await self._stack.aclose()


def _content(settings: PageSettings) -> bytes:
    """Return what is in the certificate file: a new one may have the name of the old one."""
    try:
        return named_path(settings.certificate_file).read_bytes()
    except OSError:  # told when it is used
        return b""


async def _emit_changes(agent: Agent) -> None:
    """Print a line at each change of a concern's state, as long as that can be done."""
    before: dict[tuple[str, str], tuple[str, str | None]] = {}
    try:
        while True:
            _emit_new(agent, before)
            await agent.registry.changed()
    except OSError as error:
        discard_output()
        _log.warning("changes are no longer printed: %s", error)


def _emit_new(agent: Agent, before: dict[tuple[str, str], tuple[str, str | None]]) -> None:
    """Print a line for each concern whose state is not the one in `before`, and put it there.

    What nobody reads now is left for a later change: the agent must not wait for a reader.
    """
    for each in list(agent.registry.concerns):
        now = (each.phase.value, each.status.trouble)
        if before.get((each.kit, each.name)) != now and takes_more(sys.stdout):
            before[each.kit, each.name] = now
            emit(
                {
                    "kit": each.kit or None,
                    "concern": each.name,
                    "state": now[0],
                    "trouble": now[1],
                    "try": each.status.hint,
                }
            )


def _handle_signals(agent: Agent) -> list[int]:
    """Stop the agent at SIGTERM, Ctrl-C and a closed terminal; reload it at any other SIGHUP.

    Returns the list of the signals that stop it, filled as they come.
    """
    received: list[int] = []
    reloads: set[asyncio.Task[None]] = set()

    def stop(number: int) -> None:
        received.append(number)
        closed = " (its terminal was closed)" if number == HANG_UP else ""
        _log.info("it ends: %s%s", signal.Signals(number).name, closed)
        agent.stop()

    on_terminal = sys.stdin.isatty()

    def hang_up(number: int) -> None:
        if on_terminal and not sys.stdin.isatty():
            stop(number)  # its window was closed: nobody asks it to reload
            return
        task = asyncio.ensure_future(_reload(agent))
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    handle_signals((signal.SIGTERM, signal.SIGINT), stop)
    handle_signals((HANG_UP,), hang_up)
    return received


async def _reload(agent: Agent) -> None:
    try:
        await agent.reload()
    except AgentError as error:
        told = with_hint(str(error), error.hint)
        _log.error("the profile is not used, the agent goes on as before: %s", told)


def _configure(session: Session, *, by_name: bool = False) -> Configuration:
    """Return the configuration; if it names no kit, with the only one that is plugged in.

    `by_name`: --port is the name of a kit, which is no port where the table has it no more.
    """
    import msgspec

    from agent.config.kits import name_of, require_different_ports
    from agent.wiring.update_runner import require_installer

    if by_name and session.port not in session.loaded.profile.kits:
        key = shlex.quote(f"kits.{session.port}.port")
        raise UsageError(
            f"the profile has no kit {session.port} any more",
            hint=f"`cellagent config set {key} PORT` names it again",
        )
    configuration = session.configuration if session.port else session.loaded
    profile = configuration.profile
    if profile.fota.interval_s:
        require_installer(profile)
    if profile.kits and session.port:
        # A port on the command line means that kit alone, by the name that it has.
        name = name_of(profile)
        kits = {name: profile.kit} if name else {}
        profile = msgspec.structs.replace(profile, kits=kits)
    require_different_ports(profile.kits, session.usb_ports)
    if not profile.kits and not profile.kit.port:
        kit = msgspec.structs.replace(profile.kit, port=session.only_kit_port())
        profile = msgspec.structs.replace(profile, kit=kit)
    return msgspec.structs.replace(configuration, profile=profile)


_FILES = {"unit": "cellagent.service", "rule": "60-cellagent.rules"}


def _print(session: Session, what: str) -> None:
    from importlib.resources import files

    text = (files("agent.daemon") / "packaging" / _FILES[what]).read_text("utf-8").rstrip()
    emit_or_say(session, {what: text}, text)
