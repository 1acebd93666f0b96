"""What a person sees of the bench at work: a live table on a terminal, else a line a board."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from agent.cli.bench_table import Row, result_of
from agent.cli.frame import emit, note, options, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.provisioning.outcome import Outcome, Place
    from agent.provisioning.plan import Step

_REFRESHES_PER_S = 4


class BenchView:
    """Hears of each step and each end; a context manager, since a live table must be let go.

    `watches` says that other boards will take the place of those that have ended.
    """

    def __init__(self, places: Sequence[Place], *, watches: bool = False) -> None:
        self._watches = watches
        self.outcomes: list[Outcome] = []
        self._rows = {_socket(place): Row(place) for place in places}
        self._began = time.monotonic()
        self._live: Any = None
        self._over = False
        self._once = _Once()

    def __enter__(self) -> BenchView:
        if sys.stderr.isatty() and not options().json:
            from rich.console import Console
            from rich.live import Live

            from agent.cli.bench_table import drawn

            console = Console(stderr=True, highlight=False)
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

    def step(self, place: Place, step: Step) -> None:
        """Take the step that a board is at."""
        row = self._rows.get(_socket(place))
        if row is None or row.outcome is not None or row.began is None:
            # Another board than before, or the same one again.
            row = self._rows[_socket(place)] = Row(place, began=time.monotonic())
        row.step = step.value

    def end(self, outcome: Outcome) -> None:
        """Take how a board ended, and say it."""
        place, now = outcome.place, time.monotonic()
        row = self._rows.setdefault(_socket(place), Row(place))
        began = row.began if row.began is not None and row.outcome is None else now
        row.place, row.step, row.outcome, row.seconds = place, outcome.step, outcome, now - began
        self.outcomes.append(outcome)
        if options().json:
            emit(outcome.to_json(row.seconds))
        elif self._live is None or not sys.stdout.isatty():
            say(f"{_name(place)}: {result_of(outcome)} ({outcome.step}, {row.seconds:.1f} s)")
            if outcome.hint and not outcome.ok:
                say(f"  try: {outcome.hint}")
        elif self._watches and not outcome.ok:
            _say_failed([row.name], outcome)  # above the table, whose row the next board takes

    def summary(self) -> int:
        """Say how the run went as a whole, cut off or not; return the exit code."""
        counts = Counter(outcome.outcome for outcome in self.outcomes)
        codes = [outcome.exit for outcome in self.outcomes]
        begun = [row for row in self._rows.values() if row.began is not None]
        cut_off = [row for row in begun if row.outcome is None]
        if cut_off:
            counts["unfinished"] = len(cut_off)
        ok = bool(codes) and not any(codes) and not cut_off
        if options().json:
            emit({"summary": {"boards": counts.total(), **counts, "ok": ok}})
        else:
            if self._live is not None and not self._watches:
                self._say_what_failed()
            words = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
            boards = "1 board" if counts.total() == 1 else f"{counts.total()} boards"
            took = f" in {time.monotonic() - self._began:.1f} s"
            note(f"{boards}{took}: {words}" if words else "no board was found")
            if words and not ok:
                note("next: the same command again; what is done is left alone")
        return max(codes, default=3)

    def _say_what_failed(self) -> None:
        """Say under the table what its cells have no room for; the same of many boards once."""
        failed: dict[tuple[str, ...], list[Row]] = {}
        for row in self._rows.values():
            end = row.outcome
            if end is not None and not end.ok:
                alike = end.outcome, end.step, end.reason, end.hint
                failed.setdefault(alike, []).append(row)
        for rows in failed.values():
            if rows[0].outcome is not None:
                _say_failed([row.name for row in rows], rows[0].outcome)


def _say_failed(names: Sequence[str], end: Outcome) -> None:
    note(f"{', '.join(names)}\n  {end.outcome} at {end.step}: {end.reason}")
    if end.hint:
        note(f"  try: {end.hint}")


class _Once(logging.Filter):
    """Lets what the client says of a retry through once for all boards, not once for each."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether this was not said before; with -v everything is."""
        if record.name != "agent.http.client" or options().verbosity:
            return True
        what = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        known = what in self._said
        self._said.add(what)
        return not known


def _socket(place: Place) -> str:
    """Return what a board's row stands for: the place on the hub, whichever board is there."""
    return place.usb_place or place.port


def _name(place: Place) -> str:
    return " ".join(filter(None, [place.slot, place.usb_place, place.port]))
