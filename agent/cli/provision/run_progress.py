"""Progress of `provision run`: a live table on a terminal, else a line for each board."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

from msgspec.structs import replace

from agent.cli.framework.command import discard_output, emit, note, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.safe_text import drawing, ring
from agent.cli.framework.terminal import draws, redraws
from agent.cli.provision.tray_table import Below, drawn, result_of
from agent.errors import ResourceUnavailable
from agent.provisioning.running.tray import Slot, SlotState, Tray
from at.protocol.counts import counted

if TYPE_CHECKING:
    from rich.console import Console, ConsoleDimensions, Group
    from rich.live import Live

    from agent.cli.framework.session import Session
    from agent.provisioning.boards.board import BoardLocation
    from agent.provisioning.running.outcome import Outcome
    from agent.provisioning.running.scans import Scan


def next_step(outcomes: Sequence[Outcome], *, cut_off: bool) -> str:
    """Return what to do where not every board is right; a refused one is refused by a rerun too."""
    wrong = [one for one in outcomes if not one.ok]
    first = "what `try` says of each board"
    if not cut_off and all(one.outcome == "refused" for one in wrong):
        return first
    again = "the same command again; what is done is left alone"
    return f"{first}, then {again}" if any(one.hint for one in wrong) else again


NO_BOARD = "no board was found: `cellagent ports` shows what is plugged in"
_REFRESHES_PER_S = 4


class BenchView:
    """Observer of a tray; a context manager, which ends the live table.

    With `watches`, other boards take the places of those that have ended. `prompt` gives the line
    below the table; `quiet` rings no bell.
    """

    def __init__(
        self, session: Session, tray: Tray, *, watches: bool = False, quiet: bool = False
    ) -> None:
        self._session = session
        self._json = session.json
        self._watches = watches
        self._quiet = quiet
        # Before a live table takes their place: one of rich before 15 is no terminal.
        self._terminal = sys.stderr
        self._drawn_alone = sys.stdout.isatty()
        self.outcomes: list[Outcome] = []
        self.prompt: Callable[[], str] = lambda: ""
        self._tray = tray
        self._began = time.monotonic()
        self._last_scan: Scan | None = None
        self._live: Live | None = None
        self._size: ConsoleDimensions | None = None
        self._over = False
        self._unwritten = False
        self._once = _OncePerRun(session.verbosity)

    def __enter__(self) -> BenchView:
        # One that goes on has no end to be seen at.
        live = redraws(sys.stderr) if self._watches else draws(sys.stderr)
        if live and not self._json:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=drawing(sys.stderr), highlight=False)
            self._live = Live(
                console=console,
                get_renderable=partial(self._table, console),
                refresh_per_second=_REFRESHES_PER_S,
                redirect_stdout=False,  # nothing is said there but to a file or a pipe
                redirect_stderr=False,
            )
            self._live.start()
            sys.stderr = cast("TextIO", _AboveTheTable(console, sys.stderr))
        for handler in logging.getLogger().handlers:
            handler.addFilter(self._once)
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(sys.stderr)  # above the table, which has taken its place
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            sys.stderr.flush()
            self._over = True  # what stays on the screen may be longer than it
            self._live.stop()
            sys.stderr = self._terminal
        for handler in logging.getLogger().handlers:
            handler.removeFilter(self._once)
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(sys.stderr)

    def _table(self, console: Console) -> Group:
        """Return the table for the console as large as it is now."""
        before, size = self._size, console.size
        self._size = size
        if before not in {None, size}:
            # What is there was broken into more lines than were drawn where it shrank, and older
            # tables come back where it grew: all goes up and away, the table begins at the top.
            from rich.control import Control

            console.file.write("\n" * size.height)
            console.control(Control.home(), Control.clear())
        height = None if self._over else size.height
        return drawn(self._tray, time.monotonic(), size.width, height, self._below())

    def _below(self) -> Below:
        scan = self._last_scan
        if self._over or scan is None:
            return Below(prompt="" if self._over else self.prompt())
        return Below(scan.words, not scan.taken, self.prompt())

    def end(self, outcome: Outcome, slot: Slot) -> None:
        """Show the outcome of the board in a slot."""
        self.outcomes.append(outcome)
        if slot.state is SlotState.FAIL:
            self._ring()
        if self._json:
            with self._output():
                emit(replace(outcome, hint=self._hint(outcome)).to_json(slot.seconds))
        elif self._live is None or not self._drawn_alone:
            place = _name(outcome.location)
            with self._output():
                say(f"{place}: {result_of(outcome)} ({outcome.step}, {slot.seconds:.1f} s)")
                if outcome.hint and not outcome.ok:
                    say(f"  try: {self._hint(outcome)}")
                sys.stdout.flush()  # a result that was reached is read, whatever ends the rest
        elif self._watches and not outcome.ok:
            self._show_failure([slot.name], [outcome])  # above the table: it may leave that

    def scan(self, scan: Scan) -> None:
        """Show what became of a line that was scanned."""
        self._last_scan = scan
        if not scan.taken:
            self._ring()
        if self._json:
            with self._output():
                emit({"scan": {"text": scan.text, "taken": scan.taken, "slot": scan.slot,
                               "reason": scan.words}})  # fmt: skip
        elif self._live is None or not scan.taken:
            note(scan.words if scan.taken else f"not taken: {scan.words}")

    @contextmanager
    def _output(self) -> Iterator[None]:
        """Write in the block on standard output; the boards go on where that is not possible.

        A reader that went away (`| head`) wanted no more. A disk that is full is a failure.
        """
        try:
            yield
        except OSError as error:
            discard_output()
            self._unwritten |= not isinstance(error, BrokenPipeError)
            note(
                f"standard output can be written no more ({error.strerror}); the boards go on: "
                "`cellagent provision status` tells how they ended"
            )

    def _ring(self) -> None:
        if not self._quiet:
            ring(self._terminal)

    def summary(self) -> int:
        """Show the outcome of the whole run, complete or not; return the exit code."""
        counts = Counter(outcome.outcome for outcome in self.outcomes)
        codes = [outcome.exit for outcome in self.outcomes]
        cut_off = [one for one in self._tray.slots.values() if one.state is SlotState.WORKING]
        if cut_off:
            counts["unfinished"] = len(cut_off)
        ok = bool(codes) and not any(codes) and not cut_off
        if self._json:
            with self._output():
                emit({"summary": {"boards": counts.total(), **counts, "ok": ok}})
        else:
            if self._live is not None and not self._watches:
                self._show_failures()
            words = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
            boards = counted(counts.total(), "boards")
            took = f" in {time.monotonic() - self._began:.1f} s"
            waits = any(one.state is not SlotState.EMPTY for one in self._tray.slots.values())
            none = "no board was begun" if waits else NO_BOARD
            note(f"{boards}{took}: {words}" if words else none)
            if words and not ok:
                note(f"next: {next_step(self.outcomes, cut_off=bool(cut_off))}")
        return max([*codes, int(self._unwritten)] if codes else [ResourceUnavailable.exit_code])

    def _show_failures(self) -> None:
        """Show the reasons under the table, which has no room for them; equal ones once."""
        failed: dict[tuple[str, ...], list[Outcome]] = {}
        for end in self.outcomes:
            if not end.ok:
                alike = end.outcome, end.step, end.reason, end.hint
                failed.setdefault(alike, []).append(end)
        for ends in failed.values():
            self._show_failure([_short_name(end.location) for end in ends], ends)

    def _show_failure(self, names: Sequence[str], alike: Sequence[Outcome]) -> None:
        end = alike[0]
        note(f"{', '.join(names)}\n  {end.outcome} at {end.step}: {end.reason}")
        if end.hint:
            note(f"  try: {self._hint(*alike)}")

    def _hint(self, *alike: Outcome) -> str:
        """Return the hint of these outcomes, for their boards alone."""
        end = alike[0]
        if not end.hint:
            return ""
        ports = [each.location.port for each in alike]
        others = {slot.location.port for slot in self._tray.slots.values()} - {"", *ports}
        return pasteable_hint(end.hint, end.reason, self._session, ports, others)


class _AboveTheTable:
    """A stream whose lines stand above a live table; a long one is broken by the terminal alone.

    rich's own breaks it between its words: one command would be pasted as two.
    """

    def __init__(self, console: Console, terminal: TextIO) -> None:
        self._console = console
        self._terminal = terminal
        self._begun = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)

    def write(self, text: str) -> int:
        """Show the lines that end in a text; what is begun waits for its end, or for `flush`."""
        from rich.segment import Segment, Segments

        lines, end, self._begun = (self._begun + text).rpartition("\n")
        if end:
            self._console.print(Segments([Segment(lines + end)]), crop=False)
        return len(text)

    def flush(self) -> None:
        """Show also what is begun, as a line: a question, or a last word, may have no line end."""
        if self._begun:
            self.write("\n")
        self._terminal.flush()


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


def _name(location: BoardLocation) -> str:
    """Return the slot and the USB place, and the port."""
    return " ".join(filter(None, [location.slot, location.usb_place, location.port]))


def _short_name(location: BoardLocation) -> str:
    return " ".join(filter(None, [location.slot, location.usb_place])) or location.port
