"""`cellagent page`: the live page of the running agent and of the bench, in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import ProfileCommand, agent_command, emit, note, say
from agent.cli.framework.session import Session
from agent.extras import WEB, require
from agent.tasks import first_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from agent.config import Configuration
    from agent.config.profile import PageSettings
    from agent.daemon.control.socket import ControlSocket
    from agent.page.bench_feed import RunningBench
    from agent.page.server import ServedPage

DEFAULT_LISTEN = "127.0.0.1:8642"
BENCH_LISTEN = "127.0.0.1:8643"
"""Beside the agent's page, on the same machine."""


@agent_command("cellagent page", ProfileCommand)
@click.option("--listen", metavar="HOST:PORT", help=f"Default: page.listen, else {DEFAULT_LISTEN}.")
def command(session: Session, *, listen: str | None) -> Coroutine[None, None, None]:
    """Print a link to the live page: kits, troubles, signal, and the bench.

    The running agent is asked for one if it serves the page (`run --page`), and a run at the bench
    for one to its own (`provision run --page`); without both this command serves the page until
    Ctrl-C. A link works once, for a minute.
    """
    configuration = session.configuration
    settings = page_settings(configuration, listen or "")
    return _page(session, configuration, settings)


def page_settings(configuration: Configuration, listen: str | None) -> PageSettings:
    """Return the settings of the page; `listen` "" is the profile's address, else the default one.

    None asks for a page only where the profile does. Raises MissingExtra.
    """
    import msgspec

    settings = configuration.profile.page
    if listen is not None:
        listen = listen or settings.listen or DEFAULT_LISTEN
        settings = msgspec.structs.replace(settings, listen=listen)
    if settings.listen:
        require("the page", *WEB, extra="page")
    return settings


def served_page(
    configuration: Configuration,
    settings: PageSettings,
    running: RunningBench | None = None,
    *,
    control: bool = False,
    chosen_by: str = "--page",
) -> AbstractAsyncContextManager[ServedPage]:
    """Return what serves the page while it is entered; `running` is the bench of this process.

    `chosen_by` is the option, or the command, that names another address.
    """
    from agent.cli.provision.profile_ledger import ledger_of
    from agent.page.server import serving
    from agent.page.views import Subject

    read = partial(ledger_of, configuration)
    subject = Subject(configuration.name, read, running, control)
    return serving(settings, configuration.state_dir, subject, chosen_by)


@contextlib.asynccontextmanager
async def bench_page(
    configuration: Configuration, settings: PageSettings, running: RunningBench, *, control: bool
) -> AsyncIterator[ServedPage]:
    """Serve the page of a run at the bench, and give `cellagent page` links to it."""
    from agent.daemon.control.protocol import AnyRequest, PageAnswer, PageRequest
    from agent.daemon.control.request_server import Client, RequestServer
    from agent.daemon.control.socket import bench_socket_of
    from agent.errors import UsageError

    async with served_page(configuration, settings, running, control=control) as page:

        async def answer(request: AnyRequest, client: Client) -> None:
            if not isinstance(request, PageRequest):
                raise UsageError("a run at the bench gives links to its page, and no more")
            await client.send(PageAnswer(True, link=page.link()))

        socket = bench_socket_of(configuration.state_dir, configuration.name)
        server = RequestServer(socket, answer)
        await server.start()
        try:
            yield page
        finally:
            await server.stop()


def show_link(session: Session, link: str, *, bench: str | None = None) -> None:
    """Print a link, never to a log: it lets a browser in; `bench` is one to the page of a run."""
    if session.json:
        emit({"link": link, **({"bench": bench} if bench else {})})
        return
    say(f"The page, for a minute: {link}")
    if bench and bench != link:
        say(f"The bench, for a minute: {bench}")
    sys.stdout.flush()  # to a pipe, too: what comes next is a wait


async def _page(session: Session, configuration: Configuration, settings: PageSettings) -> None:
    from agent.cli.framework.signals import first_signal
    from agent.daemon.control.socket import bench_socket_of, control_socket_of

    of_profile = configuration.state_dir, configuration.name
    bench = await _link_of(bench_socket_of(*of_profile))
    if link := await _link_of(control_socket_of(*of_profile)) or bench:
        show_link(session, link, bench=bench)
        return
    async with served_page(configuration, settings, chosen_by="--listen") as page:
        with first_signal(signal.SIGTERM) as stopped:  # as what serves is told to end
            show_link(session, page.link())
            await first_of(_more_links(session, page), asyncio.wait([stopped]))


async def _more_links(session: Session, page: ServedPage) -> None:
    """Print another link for each Enter, where somebody is there to press it; never return."""
    if sys.stdin.isatty():
        from agent.cli.framework.typed_input import InputLines

        note("Enter prints another link; Ctrl-C ends it")
        async for _line in InputLines():
            show_link(session, page.link())
    await asyncio.Event().wait()


async def _link_of(socket: ControlSocket) -> str | None:
    """Return a link of who listens on a socket; None where nobody does, or serves no page."""
    from agent.daemon.control.client import AgentRefused, NotRunning, ask
    from agent.daemon.control.protocol import PageAnswer, PageRequest

    try:
        return (await ask(socket, PageRequest(), PageAnswer)).link
    except (NotRunning, AgentRefused):  # the second: of a version without a page
        return None
