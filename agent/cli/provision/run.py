"""`cellagent provision run`: provisions boards, shows progress, writes labels."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from agent.cli.framework.command import agent_command, note
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.session import Session
from agent.cli.page import BENCH_LISTEN, bench_page, page_settings, show_link
from agent.cli.provision import bench_options
from agent.cli.provision.keyboard import Keyboard
from agent.cli.provision.profile_ledger import early_ledger
from agent.errors import AgentError, UsageError
from agent.extras import require
from agent.tasks import cancel_and_wait
from at.ports.usb import system_ports

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine

    from agent.cli.provision.run_progress import BenchView
    from agent.config.load import Configuration
    from agent.config.profile import PageSettings
    from agent.provisioning.boards.board import BoardLocation
    from agent.provisioning.exports import Labels
    from agent.provisioning.handover import Handover, OnBoardCommand
    from agent.provisioning.ledger import WorkOrder
    from agent.provisioning.running.async_ledger import AsyncLedger
    from agent.provisioning.running.bench import Bench
    from agent.provisioning.running.board_run import Station
    from agent.provisioning.running.outcome import Outcome
    from agent.provisioning.running.scans import Scans
    from agent.provisioning.running.tray import Tray

_DISCOVERY_INTERVAL_S = 1.0
_QUIET_S = 2.0  # what takes longer is told
_CLOCK_TIMEOUT_S = 5.0  # the boards report a service that is away; the start must not wait for it


@agent_command("cellagent provision run --all --expect 16")
@bench_options.take_options
@click.option("--watch", is_flag=True, help="Go on as trays are swapped, until Ctrl-C.")
@click.option("--scan", is_flag=True, help="With --watch: a scanner binds labels to boards.")
@click.option(
    "--relabel",
    multiple=True,
    metavar="LABEL",
    help="A label that may go to another board, or take the place of the board's own.",
)
@click.option("--quiet", is_flag=True, help="No bell when a board fails or a scan is wrong.")
@click.option("--operator", default="", help="Who is at work; recorded with every run.")
@click.option("--lot", help="Recorded with every run. Default: the profile's.")
@click.option("--product", help="Recorded with every run. Default: the profile's.")
@click.option(
    "--on-board", metavar="CMD", help="Give each board's record to CMD: JSON on its input."
)
@click.option(
    "--on-board-timeout",
    type=Seconds(0, 3600, min_open=True),
    metavar="S",
    help="End CMD after S seconds; else the profile's.",
)
@click.option(
    "--page",
    "listen",
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value=BENCH_LISTEN,
    help=f"Serve the live page of the tray. Without HOST:PORT: {BENCH_LISTEN}.",
)
@click.option(
    "--page-control", is_flag=True, help="With --watch --page: scan, and say who works, there too."
)
@click.option("--labels", type=click.Path(path_type=Path), help="Write labels into this folder.")
def command(session: Session, **values: object) -> Coroutine[None, None, int]:
    """Provision boards; what is right already is left alone, and a rerun resumes.

    BOARD is a port as `cellagent ports` lists it, serial:NUMBER, tcp://HOST:PORT or a kit's name;
    without one, it is the kit of the profile.
    """
    given, settings = msgspec.convert(values, RunOptions), session.configuration
    _require_fitting(given)
    page = page_settings(settings, given.listen) if given.listen else None
    bench_options.require_extras(settings.profile.provisioning)
    if given.labels is not None:
        require("a label with a QR code", "segno")
    with early_ledger(settings) as ledger:
        # Only here: a ledger that is far away is reached while they are loaded.
        from agent.cli.provision.operator_ca import load_operator_ca
        from agent.provisioning.exports import Labels
        from agent.provisioning.planning.goal import RegistrationMethod
        from agent.provisioning.running.batch import require_count
        from agent.provisioning.running.board_run import Station

        program = _on_board(settings, given)
        goal = bench_options.goal_of(given, settings)
        # As they are when a board has its turn, not when the command began: trays are swapped.
        find = bench_options.board_finder(given, session, system_ports)
        locations = find()
        require_count(locations, given.expect)
        registrar = bench_options.registrar_of(goal, settings)
        if goal.registration is RegistrationMethod.CLAIM and not goal.prove:
            note(
                "a claim brings each board into the team, and the service gets no key of it: no "
                "token of these boards is accepted until provisioning commands have followed"
            )
        # Last, so that no PIN is asked for in vain; before the loop runs, so that Ctrl-C ends it.
        authority = load_operator_ca(goal, settings)
        station = Station(
            goal,
            ledger,
            registrar,
            authority,
            settings.state_dir / "keys",
            order=_work_order(settings, given),
            relabel=frozenset(given.relabel),
        )
        tray = bench_options.tray_of(given, settings.profile.provisioning, locations)
        labels = None if given.labels is None else Labels(given.labels)
        return _provision(
            session, station, locations, find, _Prepared(given, tray, labels, page, program)
        )


class RunOptions(bench_options.BenchOptions, frozen=True):
    """The values of the options of `run`: those of `plan`, and its own."""

    watch: bool
    scan: bool
    relabel: tuple[str, ...]
    quiet: bool
    operator: str
    lot: str | None
    product: str | None
    on_board: str | None
    on_board_timeout: float | None
    listen: str | None
    page_control: bool
    labels: Path | None


class _Prepared(Struct, frozen=True):
    """The options, and what was made of them before the first board is opened."""

    given: RunOptions
    tray: Tray
    labels: Labels | None
    page: PageSettings | None
    program: OnBoardCommand | None


def _require_fitting(given: RunOptions) -> None:
    """Raise UsageError for an option without the one that it needs."""
    if given.scan and not given.watch:
        raise UsageError("--scan binds labels to boards as they come", hint="`--watch`")
    if given.page_control and not (given.watch and given.listen):
        raise UsageError(
            "--page-control is of the page of a bench that goes on", hint="`--watch --page`"
        )


def _work_order(settings: Configuration, given: RunOptions) -> WorkOrder:
    """Return what is recorded with each run: what was said, else what the profile says."""
    from agent.provisioning.ledger import WorkOrder

    # Refused here, and not by the ledger at each board.
    f"{given.operator}{given.lot}{given.product}".encode()
    section = settings.profile.provisioning
    return WorkOrder(
        given.operator,
        section.lot if given.lot is None else given.lot,
        section.product if given.product is None else given.product,
    )


async def _provision(
    session: Session,
    station: Station,
    locations: list[BoardLocation],
    find: Callable[[], list[BoardLocation]],
    prepared: _Prepared,
) -> int:
    from agent.cli.provision.run_progress import BenchView
    from agent.provisioning.boards.discovery import connected_boards
    from agent.provisioning.running.batch import run_boards, watch_boards
    from agent.provisioning.running.bench import Bench
    from agent.provisioning.running.scans import Scans

    settings, ledger, handover = session.configuration, station.ledger, None
    given, tray = prepared.given, prepared.tray
    async with AsyncExitStack() as stack:
        # The boards are opened and asked what they are while it is: it may be far away.
        stack.callback(ledger.close)
        open_board = bench_options.board_opener(session, system_ports)
        if prepared.program is not None:
            from agent.provisioning.handover import Handover

            handover = await stack.enter_async_context(
                Handover(ledger, prepared.program, _not_given)
            )
        if station.registrar is not None:
            await stack.enter_async_context(station.registrar.client)
        await _check_clock(station)
        view = BenchView(session, tray, watches=given.watch, quiet=given.quiet)
        scans = Scans(tray, settings.profile.provisioning.label_pattern) if given.scan else None
        bench = Bench(tray, scans, ledger, view.scan, "--rekey" if station.goal.rekey else "")
        if prepared.page is not None:
            from agent.page.bench_feed import RunningBench

            running = RunningBench(bench, station, given.quiet)
            page = await stack.enter_async_context(
                bench_page(settings, prepared.page, running, control=given.page_control)
            )
            show_link(session, page.link())
        if given.watch:
            keyboard = await stack.enter_async_context(_typing(bench, scans))
            view.prompt = partial(_prompt, keyboard, scans)
            outcomes = watch_boards(
                lambda: connected_boards(find()), station, open_board, bench, _DISCOVERY_INTERVAL_S
            )
        else:
            bench.look({location.port: (location, None) for location in locations})
            for location in locations:
                bench.begin(location)
            outcomes = run_boards(locations, station, open_board, bench.step)
        labelled = await _watched(outcomes, bench, view, handover, prepared.labels, ledger)
        code = view.summary()
        left = handover is not None and not await _finish(handover)
    return max(code, int(not labelled or left))


async def _watched(
    outcomes: AsyncGenerator[Outcome],
    bench: Bench,
    view: BenchView,
    handover: Handover | None,
    labels: Labels | None,
    ledger: AsyncLedger,
) -> bool:
    """Show each outcome as it comes, and give it on; return whether every label was written."""
    unlabelled = 0
    try:
        # Closed before the ledger is: stopped half-way, each board puts its mode back first.
        with view:
            async with aclosing(outcomes):
                async for outcome in outcomes:
                    view.end(outcome, bench.end(outcome))
                    if handover is not None:
                        handover.board_ended()
                    if labels is not None and outcome.ok:
                        unlabelled += not await _write_label(labels, ledger, outcome.uuid)
    except asyncio.CancelledError:
        view.summary()
        raise
    return not unlabelled


@asynccontextmanager
async def _typing(bench: Bench, scans: Scans | None) -> AsyncIterator[Keyboard]:
    """Give what is typed to the bench: lines of a scanner, or else the key that tries again."""
    from agent.provisioning.running.scans import RETRY

    with Keyboard(scans=scans is not None) as keyboard:

        async def listen() -> None:
            async for typed in keyboard.typed():
                if scans is not None:
                    await bench.scan(typed)
                elif typed == RETRY:
                    bench.retry()
            if scans is not None and keyboard.reads:
                note("the scanner's input has ended: no board gets a label any more; Ctrl-C ends")

        listening = asyncio.create_task(listen())
        try:
            yield keyboard
        finally:
            await cancel_and_wait(listening)


def _prompt(keyboard: Keyboard, scans: Scans | None) -> str:
    """Return the line below the table: what may be typed, and what was typed of it."""
    if not keyboard.reads:
        return ""
    if scans is None:
        return "r tries the boards again that failed; Ctrl-C ends"
    return f"{scans.prompt}: {keyboard.line}"


def _on_board(settings: Configuration, given: RunOptions) -> OnBoardCommand | None:
    """Return the command that is given each record, None where there is none. Raises UsageError."""
    profile, text = settings.profile.provisioning, given.on_board
    if text is None and not profile.on_board:
        return None
    from agent.provisioning.handover import OnBoardCommand, parse_command, runnable

    if text is None:
        words = runnable(profile.on_board, "provisioning.on_board")
    else:
        words = runnable(parse_command(text), "--on-board")
    return OnBoardCommand(words, given.on_board_timeout or profile.on_board_timeout_s)


async def _finish(handover: Handover) -> bool:
    """Give the records that are left; return whether all were taken."""
    giving = asyncio.ensure_future(handover.finish())
    if not (await asyncio.wait({giving}, timeout=_QUIET_S))[0]:
        note("giving the boards' records to the command; Ctrl-C leaves them to the next run")
    taken = await giving
    if not taken:
        note("records are left that the command did not take: the next run gives them again")
    return taken


def _not_given(reason: str) -> None:
    note(f"a board's record was not taken, and is kept: {reason}")


async def _write_label(labels: Labels, ledger: AsyncLedger, uuid: str) -> bool:
    """Write a board's label; return False, with a note, if that fails: it stops no board."""
    try:
        record = await ledger.call(lambda opened: opened.board(uuid))
        if record is not None:
            await asyncio.to_thread(labels.write, record)
    except AgentError as error:
        note(f"{error}\n  try: {error.hint}" if error.hint else str(error))
        return False
    return True


async def _check_clock(station: Station) -> None:
    """Compare this host's clock, which dates certificates, to the cloud's. Raises RefusedByRule."""
    from agent.provisioning.planning.goal import CertificateSource
    from agent.provisioning.running.host_clock import check_clock_for_certificates

    if station.goal.certificate is CertificateSource.NONE:
        return
    ahead_s = None
    if station.registrar is not None:
        with suppress(AgentError, TimeoutError):
            async with asyncio.timeout(_CLOCK_TIMEOUT_S):
                ahead_s = await station.registrar.host_clock_ahead_s(station.now)
    if doubt := check_clock_for_certificates(ahead_s):
        note(doubt)
