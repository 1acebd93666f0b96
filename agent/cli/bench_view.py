"""What a person sees of the bench at work: a live table on a terminal, else a line a board."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.cli.frame import emit, note, options, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.provisioning.outcome import Outcome, Place
    from agent.provisioning.plan import Step

_REFRESHES_PER_S = 4


class BenchView:
    """Hears of each step and each end; a context manager, since a live table must be let go."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.outcomes: list[Outcome] = []
        self._places = {place.port: place for place in places}
        self._steps: dict[str, str] = {}
        self._begun: dict[str, float] = {}
        self._ended: dict[str, tuple[Outcome, float]] = {}
        self._live: Any = None

    def __enter__(self) -> BenchView:
        if sys.stderr.isatty() and not options().json:
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, highlight=False)
            self._live = Live(
                console=console,
                get_renderable=self._table,
                refresh_per_second=_REFRESHES_PER_S,
            )
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, place: Place, step: Step) -> None:
        """Take the step that a board is at."""
        self._places[place.port] = place
        if self._ended.pop(place.port, None) or place.port not in self._begun:
            self._begun[place.port] = time.monotonic()
        self._steps[place.port] = step.value

    def end(self, outcome: Outcome) -> None:
        """Take how a board ended, and say it."""
        place = outcome.place
        now = time.monotonic()
        seconds = now - self._begun.get(place.port, now)
        self._places[place.port] = place
        self._steps[place.port] = outcome.step
        self._ended[place.port] = outcome, seconds
        self.outcomes.append(outcome)
        if options().json:
            emit(outcome.to_json(seconds))
        elif self._live is None:
            say(f"{_name(place)}: {_result(outcome)} ({outcome.step}, {seconds:.1f} s)")
            if outcome.hint:
                say(f"  try: {outcome.hint}")

    def summary(self) -> int:
        """Say how the run went as a whole; return the exit code."""
        counts = Counter(outcome.outcome for outcome in self.outcomes)
        codes = [outcome.exit for outcome in self.outcomes]
        if options().json:
            ok = bool(codes) and not any(codes)
            emit({"summary": {"boards": len(codes), **counts, "ok": ok}})
        else:
            if self._live is not None:
                self._say_hints()
            words = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
            boards = "1 board" if len(codes) == 1 else f"{len(codes)} boards"
            note(f"{boards}: {words or 'none was found'}")
        return max(codes, default=3)

    def _say_hints(self) -> None:
        """Say under the table what its cells have no room for, the same advice once."""
        advice: dict[str, list[str]] = {}
        for outcome in self.outcomes:
            if outcome.hint and not outcome.ok:
                advice.setdefault(outcome.hint, []).append(_name(outcome.place))
        for hint, names in advice.items():
            note(f"{', '.join(names)}:\n  try: {hint}")

    def _table(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from agent.cli.terminal import printable

        style = "" if os.environ.get("NO_COLOR") else "bold"
        table = Table(box=None, pad_edge=False, header_style=style)
        table.add_column("board", overflow="fold", max_width=26)
        table.add_column("step", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True)
        table.add_column("result", overflow="fold")
        for port, place in self._places.items():
            cells = _name(place), self._steps.get(port, "waiting"), *self._time_and_result(port)
            table.add_row(*(Text(printable(cell)) for cell in cells))
        ended = len(self._ended)
        bar = ProgressBar(total=len(self._places) or 1, completed=ended, width=40)
        # The bar ends no line: the count stands beside it.
        return Group(table, Text(), bar, Text(f" {ended} of {len(self._places)} boards"))

    def _time_and_result(self, port: str) -> tuple[str, str]:
        if port in self._ended:
            outcome, seconds = self._ended[port]
            return f"{seconds:.1f} s", _result(outcome)
        if port in self._begun:
            return f"{time.monotonic() - self._begun[port]:.1f} s", ""
        return "", ""


def _name(place: Place) -> str:
    return " ".join(filter(None, [place.slot, place.usb_place, place.port]))


def _result(outcome: Outcome) -> str:
    return outcome.outcome + (f": {outcome.reason}" if outcome.reason else "")
