"""`cellagent provision run`: the bench at work."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.provision.settings import (
    BenchOptions,
    bench_options,
    configuration,
    device_ca_of,
    finder_of,
    goal_of,
    ledger_of,
    open_board,
    registrar_of,
)
from agent.cli.shell.command import AgentCommand, note, run
from agent.errors import AgentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.config.load import Configuration
    from agent.provisioning.board import BoardLocation
    from agent.provisioning.board_ledger import AsyncLedger
    from agent.provisioning.ca.device_ca import DeviceCa
    from agent.provisioning.exports import Labels
    from agent.provisioning.goal import Goal
    from agent.provisioning.registrar import Registrar

_LOOK_EVERY_S = 1.0
_CLOCK_WITHIN_S = 5.0  # a service that is away is told of by the boards, not by a long start


@click.command(
    cls=AgentCommand, name="run", epilog="Example: cellagent provision run --all --expect 16"
)
@bench_options
@click.option("--watch", is_flag=True, help="Go on as trays are swapped, until Ctrl-C.")
@click.option("--labels", type=click.Path(path_type=Path), help="Write labels into this folder.")
def command(*, watch: bool, labels: Path | None, **told: Any) -> None:
    """Provision boards; what is right already is left alone, and a rerun resumes.

    BOARD is a port as `cellagent ports` lists it, serial:NUMBER, or tcp://HOST:PORT.
    """
    from agent.provisioning.batch import require_count

    wanted = BenchOptions(**told)
    settings = configuration()
    goal = goal_of(wanted, settings)
    find = finder_of(wanted, settings)
    locations = find()
    require_count(locations, wanted.expect)
    registrar = registrar_of(goal, settings)
    # Last, and before the loop runs: it may ask for a PIN, which is not to be asked for in vain.
    authority = device_ca_of(goal, settings)
    look = find if watch else None
    run(_provision(settings, goal, registrar, authority, locations, look, labels))


async def _provision(
    settings: Configuration,
    goal: Goal,
    registrar: Registrar | None,
    authority: DeviceCa | None,
    locations: list[BoardLocation],
    look: Callable[[], list[BoardLocation]] | None,
    label_folder: Path | None,
) -> int:
    from agent.cli.provision.view import BenchView
    from agent.provisioning.batch import run_boards, watch_boards
    from agent.provisioning.board_ledger import AsyncLedger
    from agent.provisioning.board_run import Station
    from agent.provisioning.discovery import connected_boards
    from agent.provisioning.exports import Labels

    labels = Labels(label_folder) if label_folder is not None else None
    async with AsyncExitStack() as stack:
        ledger = AsyncLedger(await asyncio.to_thread(ledger_of, settings, writes=True))
        stack.callback(ledger.close)
        if registrar is not None:
            await stack.enter_async_context(registrar.client)
        await _check_clock(goal, registrar)
        station = Station(goal, ledger, registrar, authority, settings.state_dir / "keys", _now)
        view = BenchView(locations, watches=look is not None)
        if look is not None:
            outcomes = watch_boards(
                lambda: connected_boards(look()), station, open_board, view.step, _LOOK_EVERY_S
            )
        else:
            outcomes = run_boards(locations, station, open_board, view.step)
        unlabelled = 0
        try:
            # Closed before the ledger is: stopped half-way, each board puts its mode back first.
            with view:
                async with aclosing(outcomes):
                    async for outcome in outcomes:
                        view.end(outcome)
                        if labels is not None and outcome.ok:
                            unlabelled += not await _labelled(labels, ledger, outcome.uuid)
        except asyncio.CancelledError:
            view.summary()
            raise
    return max(view.summary(), min(unlabelled, 1))


async def _labelled(labels: Labels, ledger: AsyncLedger, uuid: str) -> bool:
    """Write a board's label; say why it could not be: that stops no board."""
    try:
        record = await ledger.call(lambda opened: opened.board(uuid))
        if record is not None:
            await asyncio.to_thread(labels.write, record)
    except AgentError as error:
        note(str(error))
        return False
    return True


async def _check_clock(goal: Goal, registrar: Registrar | None) -> None:
    """Compare clocks before certificates are dated by ours. Raises RefusedByRule."""
    from agent.provisioning.goal import CertificateSource
    from agent.provisioning.host_clock import check_clock_for_certificates

    if goal.certificate is CertificateSource.NONE:
        return
    ahead_s = None
    if registrar is not None:
        with suppress(AgentError, TimeoutError):
            async with asyncio.timeout(_CLOCK_WITHIN_S):
                ahead_s = await registrar.host_clock_ahead_s(_now)
    if doubt := check_clock_for_certificates(ahead_s):
        note(doubt)


def _now() -> datetime:
    return datetime.now(UTC)
