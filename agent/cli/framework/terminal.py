"""Tables, bars, questions and wrapped text for a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Container, Iterator, Sequence
from importlib.util import find_spec
from types import FrameType
from typing import Protocol, TextIO, TypeVar

import click

from agent.cli.framework.safe_text import drawing, printable
from agent.errors import UsageError

T = TypeVar("T")
_WIDTH = 80
_TOLD_EVERY = 2000  # lines of a log, a third of a second
_BLANK = "\N{NO-BREAK SPACE}"


def width_of_text() -> int:
    """Return the columns of what is wrapped: 80, or those of a terminal that is narrower."""
    return min(_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDTH


def wrapped(text: str, first: str, indent: str | None = None, width: int = 0) -> list[str]:
    """Return `text` behind `first` as lines of at most `width`, or as wide as text is.

    The further lines stand behind `indent`, usually under the text of the first one. A path or a
    command stays whole.
    """
    lines = textwrap.wrap(
        re.sub("`[^`]+`", lambda command: command[0].replace(" ", _BLANK), text),
        width or width_of_text(),
        initial_indent=first,
        subsequent_indent=" " * len(first) if indent is None else indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_BLANK, " ") for line in lines]


def folded(text: str, stream: TextIO) -> str:
    """Return `text` in lines that fit the terminal of `stream`; where that is none, as it is.

    What goes on in a further line stands below the last of the columns with which the line began.
    """
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = text.split("\n")
    return "\n".join(line if len(line) <= width else _in_lines(line, width) for line in lines)


def _in_lines(line: str, width: int) -> str:
    columns = [gap.end() for gap in re.finditer(r" {2,}(?=\S)", line[: width // 2])]
    at = columns[-1] if columns else 0
    return "\n".join(wrapped(line[at:], line[:at], width=width))


def draws(stream: TextIO) -> bool:
    """Return whether a table is drawn there: on a terminal, where the extra `terminal` is."""
    return stream.isatty() and find_spec("rich") is not None


def redraws(stream: TextIO) -> bool:
    """Return whether a table is drawn anew there: else it is shown at its end alone."""
    return draws(stream) and os.environ.get("TERM") not in {"dumb", "unknown"}


_MARK = re.compile(r"( *)(ok|NO|!!|!|\?\?|\.\.)(?=  |$)")
_COLOURS = {"ok": 32, "NO": 31, "!!": 33, "!": 33, "??": 33, "..": 36}


def colours(stream: TextIO) -> bool:
    """Return whether colours are shown there: on a terminal that has and wants them."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def marked(line: str) -> str:
    """Return a line for a person; the mark it begins with is coloured where colours are shown."""
    line = printable(line)
    if not colours(sys.stdout) or (mark := _MARK.match(line)) is None:
        return line
    return f"{mark[1]}\x1b[{_COLOURS[mark[2]]}m{mark[2]}\x1b[m{line[mark.end() :]}"


def say_marked(*lines: str) -> None:
    """Write lines for people on standard output, with the marks they begin with in colour."""
    shown = (marked(folded(line, sys.stdout)) for line in lines)
    drawing(sys.stdout).write("".join(f"{line}\n" for line in shown))


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> Iterator[str]:
    """Yield each row as a line whose cells stand in columns; those of `right` end alike."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


YES = click.option("--yes", is_flag=True, help="Do not ask.")


def ask(question: str, *, yes: bool) -> None:
    """Ask a person before what cannot be undone; `yes` is that of --yes.

    Raises UsageError where nobody is there to ask, click.Abort where the answer is not yes.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to ask", hint="`--yes` does it without asking")
    with ended_by_ctrl_c():
        click.confirm(printable(question), abort=True, err=True)


def interrupted_already(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C where one came that the event loop has not seen yet."""
    signal.default_int_handler(number, frame)


@contextlib.contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end what waits for an answer or input in a thread, and one that came before it.

    An event loop would cancel that once it is over.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if before is interrupted_already:
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_BATCH = 100
# As services write it; the full one, of 32 characters, folds in most tables.
_FINE_TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$")


class TableWriter:
    """Writes rows as they come, a hundred at a time, so that a long list is not held in memory."""

    def __init__(self, *columns: str) -> None:
        self._columns = [printable(column) for column in columns]
        self._rows: list[Sequence[str]] = []
        self._first = True

    def add(self, *cells: object) -> None:
        """Add a row; None shows as a dash, a time in UTC to the second."""
        shown = ["-" if cell is None or cell == "" else printable(str(cell)) for cell in cells]
        shown = [_FINE_TIME.sub(r"\1Z", cell) for cell in shown]
        self._rows.append([cell.replace("\n", " ") for cell in shown])
        if len(self._rows) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait; the names of the columns come before the first of them."""
        if self._first or self._rows:
            if draws(sys.stdout):
                self._draw()
            else:
                self._print()
        self._first = False
        self._rows = []

    def _print(self) -> None:
        rows = [self._columns, *self._rows] if self._first else self._rows
        sys.stdout.writelines(f"{line}\n" for line in aligned(rows))
        sys.stdout.flush()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        style = "" if os.environ.get("NO_COLOR") else "bold"
        table = Table(box=None, pad_edge=False, show_header=self._first, header_style=style)
        for column in self._columns:
            table.add_column(Text(column), overflow="fold")
        for row in self._rows:
            table.add_row(*(Text(cell) for cell in row))
        Console(file=drawing(sys.stdout), highlight=False).print(table)


_PROGRESS_WIDTH, _PROGRESS_BAR = 79, 24


def progress_bar(what: str, done: int, total: int) -> str:
    """Return "download [####    ]  42 %"."""
    bar = "#" * (_PROGRESS_BAR * done // total)
    return f"{printable(what)[:_PROGRESS_BAR]} [{bar:{_PROGRESS_BAR}}] {100 * done // total:3} %"


def show_progress(what: str, done: int, total: int | None) -> None:
    """Show how much of `what` is done on standard error, if it is a terminal; wiped at the end.

    A `total` of None is not known.
    """
    if not sys.stderr.isatty():
        return
    text = progress_bar(what, done, total) if total else f"{what} {done}"
    overwrite_line("" if done == total else text)


def told(what: str, items: Sequence[T]) -> Iterator[T]:
    """Yield the items, and show the progress of `what` where they are many."""
    for number, item in enumerate(items):
        if number and number % _TOLD_EVERY == 0:
            show_progress(what, number, len(items))
        yield item
    if len(items) > _TOLD_EVERY:
        show_progress(what, len(items), len(items))


def overwrite_line(text: str, *, end: str = "") -> None:
    """Write `text` over the line at which the cursor of standard error is; "" wipes it.

    A line that is wider than the terminal would become two, of which one stays.
    """
    stream = drawing(sys.stderr)
    widest = shutil.get_terminal_size().columns - 1
    text, width = printable(text)[:widest], min(_PROGRESS_WIDTH, widest)
    stream.write(f"\r{text:{width}}{end}" if text else "\r" + " " * width + "\r")
    stream.flush()


class Waiter(Protocol):
    """The session of a command, as far as waiting goes: who reads it, and whether it waits.

    Not its class: that imports this module.
    """

    json: bool
    is_waiting: bool


@contextlib.asynccontextmanager
async def waiting(what: str, session: Waiter) -> AsyncIterator[None]:
    """Show on standard error that `what` takes its time, if it is a terminal, without --json.

    The cursor stays at the begin of the line: what is written meanwhile takes its place.
    """
    if session.json or session.is_waiting or not sys.stderr.isatty():
        yield
        return
    import asyncio  # `--help` of a command must not pay for it

    loop = asyncio.get_running_loop()

    async def turn(started: float) -> None:
        while True:
            await asyncio.sleep(_TURN_S)  # nothing is shown of what ends at once
            took = loop.time() - started
            mark = "|/-\\"[int(took * 3) % 4]
            overwrite_line(f"{mark} {what}, {took:.0f} s", end="\r")

    session.is_waiting = True
    turning = asyncio.create_task(turn(loop.time()))
    try:
        yield
    finally:
        session.is_waiting = False
        turning.cancel()
        overwrite_line("")


_TURN_S = 0.3


def bar(value: object, low: float, high: float, width: int = 10) -> str:
    """Return a bar of `width` characters for `value` between `low` and `high`.

    The rest is dotted; all of it if `value` is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "\u00b7" * width
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    filled = round(share * width)
    return "\u2588" * filled + "\u00b7" * (width - filled)
