"""`cellagent provision run`: the bench at work, with a live table."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
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
)
from agent.cli.frame import AgentCommand, emit, note, options, run, say

if TYPE_CHECKING:
    from agent.provisioning.board_run import Bench
    from agent.provisioning.outcome import Outcome, Place
    from agent.provisioning.plan import Step

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


async def _provision(told: BenchOptions, watch: bool, labels: Path | None) -> int:
    from agent.connect import connect
    from agent.provisioning.bench import expect, run_boards, watch_boards
    from agent.provisioning.board_run import Bench, LedgerLine
    from agent.provisioning.goal import Registration
    from agent.provisioning.modem_board import open_board
    from agent.provisioning.places import chosen_places
    from agent.provisioning.registrar import Registrar

    settings = configuration()
    goal = goal_of(told, settings)
    authority = device_ca(goal, settings)
    names = told.boards or tuple(filter(None, [options().port]))
    slots = settings.profile.provisioning.slots
    places = chosen_places(names, all_kits=told.all_kits, slots=slots)
    expect(places, told.expect)
    async with AsyncExitStack() as stack:
        ledger = await asyncio.to_thread(ledger_of, settings, writes=True)
        stack.callback(ledger.close)
        registrar = None
        if goal.registration is not Registration.NONE or goal.prove:
            client = await stack.enter_async_context(connect(settings))
            section = settings.profile.provisioning
            registrar = Registrar(
                client, goal.registration, section.sub_type, section.tags, section.firmware_types
            )
        bench = Bench(
            goal, LedgerLine(ledger), registrar, authority, settings.state_dir / "keys", _now
        )
        board_view = stack.enter_context(_View(places))
        if watch:

            def look() -> list[Place]:
                return chosen_places(names, all_kits=told.all_kits, slots=slots)

            outcomes = watch_boards(look, bench, open_board, board_view.step, _every_second)
        else:
            outcomes = run_boards(places, bench, open_board, board_view.step)
        async for outcome in outcomes:
            board_view.end(outcome)
            if labels is not None and outcome.ok:
                await asyncio.to_thread(_label, bench, outcome, labels)
    return _summary(board_view)


def _now() -> datetime:
    return datetime.now(UTC)


async def _every_second() -> AsyncIterator[None]:
    while True:
        yield
        await asyncio.sleep(_LOOK_EVERY_S)


def _label(bench: Bench, outcome: Outcome, folder: Path) -> None:
    from agent.provisioning.labels import label_line, write_qr

    record = bench.ledger.ledger.board(outcome.uuid)
    if record is None:
        return
    write_qr(record, folder)
    with (folder / "labels.csv").open("a", encoding="utf-8") as file:
        file.write(label_line(record) + "\n")


class _View:
    """What a person sees meanwhile: a live table on a terminal, else a line a board."""

    def __init__(self, places: list[Place]) -> None:
        self.outcomes: list[Outcome] = []
        self._begun = {place.port: time.monotonic() for place in places}
        self._rows = {place.port: [_name(place), "waiting", ""] for place in places}
        self._live: Any = None

    def __enter__(self) -> _View:
        if sys.stderr.isatty() and not options().json:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(self._table(), console=Console(stderr=True), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, place: Place, step: Step) -> None:
        """Show which step a board is at."""
        self._begun.setdefault(place.port, time.monotonic())
        self._rows[place.port] = [_name(place), step.value, ""]
        self._draw()

    def end(self, outcome: Outcome) -> None:
        """Show how a board ended."""
        place = outcome.place
        seconds = time.monotonic() - self._begun.pop(place.port, time.monotonic())
        self.outcomes.append(outcome)
        result = outcome.outcome + (f": {outcome.reason}" if outcome.reason else "")
        self._rows[place.port] = [_name(place), outcome.step, f"{result} ({seconds:.1f} s)"]
        if options().json:
            emit(outcome.to_json(seconds))
        elif self._live is None:
            say(f"{_name(place)}: {result} ({outcome.step}, {seconds:.1f} s)")
            if outcome.hint:
                say(f"  try: {outcome.hint}")
        self._draw()

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)

    def _table(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from agent.cli.terminal import printable

        table = Table("board", "step", "result", box=None, pad_edge=False)
        for row in self._rows.values():
            table.add_row(*(Text(printable(cell)) for cell in row))
        return Group(table, ProgressBar(len(self._rows) or 1, len(self.outcomes), width=40))


def _name(place: Place) -> str:
    return " ".join(filter(None, [place.slot, place.usb_place, place.port]))


def _summary(view: _View) -> int:
    counts = Counter(outcome.outcome for outcome in view.outcomes)
    codes = [outcome.exit for outcome in view.outcomes]
    ok = bool(codes) and not any(codes)
    if options().json:
        emit({"summary": {"boards": len(codes), **counts, "ok": ok}})
    else:
        words = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
        note(f"{len(codes)} boards: {words or 'none was found'}")
    if not codes:
        return 3
    return max(codes)
