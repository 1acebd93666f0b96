"""`cellagent provision run`: the bench at work."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli.bench_settings import (
    BenchOptions,
    bench_options,
    configuration,
    device_ca,
    goal_of,
    ledger_of,
    places_of,
)
from agent.cli.frame import AgentCommand, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent.config.load import Configuration
    from agent.provisioning.goal import Goal
    from agent.provisioning.registrar import Registrar

_LOOK_EVERY_S = 1.0


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
    run(_provision(BenchOptions(**told), watch, labels))


async def _provision(told: BenchOptions, watch: bool, label_folder: Path | None) -> int:
    from agent.cli.bench_view import BenchView
    from agent.provisioning.bench import expect, run_boards, watch_boards
    from agent.provisioning.labels import Labels
    from agent.provisioning.modem_board import open_board
    from agent.provisioning.workbench import Bench, LedgerLine

    settings = configuration()
    goal = goal_of(told, settings)
    authority = device_ca(goal, settings)
    places = places_of(told, settings)
    expect(places, told.expect)
    labels = Labels(label_folder) if label_folder is not None else None
    async with AsyncExitStack() as stack:
        line = LedgerLine(await asyncio.to_thread(ledger_of, settings, writes=True))
        stack.callback(line.close)
        registrar = await _registrar(goal, settings, stack)
        bench = Bench(goal, line, registrar, authority, settings.state_dir / "keys", _now)
        view = stack.enter_context(BenchView(places))
        if watch:
            outcomes = watch_boards(
                lambda: places_of(told, settings), bench, open_board, view.step, _every_second
            )
        else:
            outcomes = run_boards(places, bench, open_board, view.step)
        # Closed before the ledger is: stopped half-way, each board puts its mode back first.
        async with aclosing(outcomes):
            async for outcome in outcomes:
                view.end(outcome)
                record = await line(line.ledger.board, outcome.uuid) if outcome.ok else None
                if labels is not None and record is not None:
                    await asyncio.to_thread(labels.write, record)
    return view.summary()


async def _registrar(
    goal: Goal, settings: Configuration, stack: AsyncExitStack
) -> Registrar | None:
    from agent.provisioning.goal import Registration

    if goal.registration is Registration.NONE and not goal.prove:
        return None
    # Only here: a bench with no service need not pay for the HTTP client.
    from agent.connect import connect
    from agent.provisioning.registrar import Registrar

    section = settings.profile.provisioning
    client = await stack.enter_async_context(connect(settings))
    return Registrar(
        client, goal.registration, section.sub_type, section.tags, section.firmware_types
    )


def _now() -> datetime:
    return datetime.now(UTC)


async def _every_second() -> AsyncIterator[None]:
    while True:
        yield
        await asyncio.sleep(_LOOK_EVERY_S)
