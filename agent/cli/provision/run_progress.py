"""Progress of `provision run`: a live table on a terminal, else a line for each board."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.cli.framework.command import emit, note, say
from agent.cli.framework.safe_text import drawing, printable
from agent.cli.framework.terminal import draws
from agent.errors import ResourceUnavailable
from at.protocol.counts import counted

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

    from agent.cli.framework.session import Session
    from agent.provisioning.boards.board import BoardLocation
    from agent.provisioning.planning.plan import ProvisioningStep
    from agent.provisioning.running.outcome import Outcome


_BAR_WIDTH = 40
_AROUND = 4
"""Lines of the screen that are no board's: heading, what is hidden, bar, the cursor's."""
_LONGEST_NAME = 26


@dataclass(slots=True)
class Row:
    """One socket of the tray and the board that is in it; times are monotonic seconds."""

    location: BoardLocation
    step: str = "waiting"
    began: float | None = None
    outcome: Outcome | None = None
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The slot and the USB place, or else the port."""
        return (
            " ".join(filter(None, [self.location.slot, self.location.usb_place]))
            or self.location.port
        )

    @property
    def ok(self) -> bool:
        """Whether the board has reached its goal."""
        return self.outcome is not None and self.outcome.ok


def result_of(outcome: Outcome) -> str:
    """Return how a board ended, and why."""
    return outcome.outcome + (f": {outcome.reason}" if outcome.reason else "")


def next_step(outcomes: Sequence[Outcome], *, cut_off: bool) -> str:
    """Return what to do where not every board is right; a refused one is refused by a rerun too."""
    if cut_off or any(not one.ok and one.outcome != "refused" for one in outcomes):
        return "the same command again; what is done is left alone"
    return "what `try` says of each board"


def drawn(rows: Sequence[Row], height: int | None) -> Group:
    """Return the table of the boards for `rich`, at most `height` lines high; None: no limit.

    Where the boards do not all fit, those that are done are left out.
    """
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    ordered = sorted(
        rows, key=lambda row: (_natural(row.location.slot), _natural(row.location.usb_place))
    )
    shown = fitting(ordered, height)
    heading = "board", "step", "time", "result"
    cells = [heading, *(_cells(row) for row in shown)]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    styles = [_style_unless_plain("bold"), *(_style(row) for row in shown)]
    lines = [
        # By hand: a rich table takes a long reason's room from the columns beside it.
        Text(_line(*line, widths), style=style, no_wrap=True, overflow="ellipsis")
        for line, style in zip(cells, styles, strict=True)
    ]
    ended = [row for row in rows if row.outcome is not None]
    hidden = [f"and {len(rows) - len(shown)} more"] if len(shown) < len(rows) else []
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        ProgressBar(total=len(rows) or 1, completed=len(ended), width=_BAR_WIDTH),
        Text(f"{len(ended)} of {counted(len(rows), 'boards')}"),
    )
    return Group(*lines, *(Text(line) for line in hidden), bar)


def fitting(rows: Sequence[Row], height: int | None) -> Sequence[Row]:
    """Return the rows that fit a screen of `height` lines, in their order; those not done first."""
    room = len(rows) if height is None else max(1, height - _AROUND)
    if len(rows) <= room:
        return rows
    return [row for row in rows if not row.ok][:room]


def _line(name: str, step: str, took: str, result: str, widths: Sequence[int]) -> str:
    first, second, third = widths
    return f"{name:{first}}  {step:{second}}  {took:>{third}}  {result}".rstrip()


def _cells(row: Row) -> tuple[str, str, str, str]:
    began = row.began if row.began is not None else time.monotonic()
    seconds = row.seconds if row.outcome is not None else time.monotonic() - began
    waiting = row.outcome is None and row.began is None
    name = printable(row.name)
    if len(name) > _LONGEST_NAME:  # paths differ in their end
        name = "…" + name[1 - _LONGEST_NAME :]
    result = printable(result_of(row.outcome)) if row.outcome is not None else ""
    return name, row.step, "" if waiting else f"{seconds:.1f} s", result


def _style(row: Row) -> str:
    return "" if row.outcome is None or row.ok else _style_unless_plain("red")


def _style_unless_plain(style: str) -> str:
    return "" if os.environ.get("NO_COLOR") else style


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key by which A2 comes before A10, and 1-1.2 before 1-1.10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


_REFRESHES_PER_S = 4


class BenchView:
    """Observer of the boards' steps and outcomes; a context manager, which ends the live table.

    With `watches`, other boards take the places of those that have ended.
    """

    def __init__(
        self, session: Session, locations: Sequence[BoardLocation], *, watches: bool = False
    ) -> None:
        self._json = session.json
        self._watches = watches
        self.outcomes: list[Outcome] = []
        self._rows = {_row_key(location): Row(location) for location in locations}
        self._began = time.monotonic()
        self._live: Live | None = None
        self._over = False
        self._once = _OncePerRun(session.verbosity)

    def __enter__(self) -> BenchView:
        if draws(sys.stderr) and not self._json:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=drawing(sys.stderr), highlight=False)
            self._live = Live(
                console=console,
                get_renderable=lambda: drawn(
                    list(self._rows.values()), None if self._over else console.height
                ),
                refresh_per_second=_REFRESHES_PER_S,
            )
            self._live.start()
        for handler in logging.getLogger().handlers:
            handler.addFilter(self._once)
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(sys.stderr)  # above the table, which has taken its place
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            self._over = True  # what stays on the screen may be longer than it
            self._live.stop()
        for handler in logging.getLogger().handlers:
            handler.removeFilter(self._once)
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(sys.stderr)

    def step(self, location: BoardLocation, step: ProvisioningStep) -> None:
        """Show the step that a board is at."""
        row = self._rows.get(_row_key(location))
        if row is None or row.outcome is not None or row.began is None:
            # Another board than before, or the same one again.
            row = self._rows[_row_key(location)] = Row(location, began=time.monotonic())
        row.step = step.value

    def end(self, outcome: Outcome) -> None:
        """Show the outcome of a board."""
        location, now = outcome.location, time.monotonic()
        row = self._rows.setdefault(_row_key(location), Row(location))
        began = row.began if row.began is not None and row.outcome is None else now
        row.location, row.step, row.outcome, row.seconds = (
            location,
            outcome.step,
            outcome,
            now - began,
        )
        self.outcomes.append(outcome)
        if self._json:
            emit(outcome.to_json(row.seconds))
        elif self._live is None or not sys.stdout.isatty():
            say(f"{_name(location)}: {result_of(outcome)} ({outcome.step}, {row.seconds:.1f} s)")
            if outcome.hint and not outcome.ok:
                say(f"  try: {outcome.hint}")
        elif self._watches and not outcome.ok:
            _show_failure([row.name], outcome)  # above the table, whose row the next board takes

    def summary(self) -> int:
        """Show the outcome of the whole run, complete or not; return the exit code."""
        counts = Counter(outcome.outcome for outcome in self.outcomes)
        codes = [outcome.exit for outcome in self.outcomes]
        begun = [row for row in self._rows.values() if row.began is not None]
        cut_off = [row for row in begun if row.outcome is None]
        if cut_off:
            counts["unfinished"] = len(cut_off)
        ok = bool(codes) and not any(codes) and not cut_off
        if self._json:
            emit({"summary": {"boards": counts.total(), **counts, "ok": ok}})
        else:
            if self._live is not None and not self._watches:
                self._show_failures()
            words = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
            boards = counted(counts.total(), "boards")
            took = f" in {time.monotonic() - self._began:.1f} s"
            note(f"{boards}{took}: {words}" if words else "no board was found")
            if words and not ok:
                note(f"next: {next_step(self.outcomes, cut_off=bool(cut_off))}")
        return max(codes, default=ResourceUnavailable.exit_code)

    def _show_failures(self) -> None:
        """Show the reasons under the table, which has no room for them; equal ones once."""
        failed: dict[tuple[str, ...], list[Row]] = {}
        for row in self._rows.values():
            end = row.outcome
            if end is not None and not end.ok:
                alike = end.outcome, end.step, end.reason, end.hint
                failed.setdefault(alike, []).append(row)
        for rows in failed.values():
            if rows[0].outcome is not None:
                _show_failure([row.name for row in rows], rows[0].outcome)


def _show_failure(names: Sequence[str], end: Outcome) -> None:
    note(f"{', '.join(names)}\n  {end.outcome} at {end.step}: {end.reason}")
    if end.hint:
        note(f"  try: {end.hint}")


class _OncePerRun(logging.Filter):
    """Passes a message of the HTTP client about a retry once for all boards, not once for each."""

    def __init__(self, verbosity: int) -> None:
        super().__init__()
        self._verbosity = verbosity
        self._logged: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if this was not logged before; always with -v."""
        if record.name != "agent.http.client" or self._verbosity:
            return True
        what = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        known = what in self._logged
        self._logged.add(what)
        return not known


def _row_key(location: BoardLocation) -> str:
    """Return the key of a row: the place on the hub, whichever board is there, or the port."""
    return location.usb_place or location.port


def _name(location: BoardLocation) -> str:
    return " ".join(filter(None, [location.slot, location.usb_place, location.port]))
