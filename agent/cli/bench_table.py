"""The live table of the bench: a line a board, in the order of the slots, and a bar."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.provisioning.outcome import Outcome, Place

_BAR_WIDTH = 40
_AROUND = 4
"""Lines of the screen that are no board's: heading, what is hidden, bar, the cursor's."""
_LONGEST_NAME = 26


@dataclass(slots=True)
class Row:
    """One socket of the tray and the board that is in it; times are monotonic seconds."""

    place: Place
    step: str = "waiting"
    began: float | None = None
    outcome: Outcome | None = None
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Return what stands on the tray, or else the port."""
        return " ".join(filter(None, [self.place.slot, self.place.usb_place])) or self.place.port

    @property
    def ok(self) -> bool:
        """Tell whether the board is as it should be."""
        return self.outcome is not None and self.outcome.ok


def result_of(outcome: Outcome) -> str:
    """Return how a board ended, and why."""
    return outcome.outcome + (f": {outcome.reason}" if outcome.reason else "")


def drawn(rows: Sequence[Row], height: int | None) -> Any:
    """Return what rich draws of the boards on a screen of `height` lines; None: all of them.

    Where they do not all fit, those that are done make room for the others.
    """
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    ordered = sorted(
        rows, key=lambda row: (_natural(row.place.slot), _natural(row.place.usb_place))
    )
    shown = fitting(ordered, height)
    heading = "board", "step", "time", "result"
    cells = [heading, *(_cells(row) for row in shown)]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    styles = [_unless_plain("bold"), *(_style(row) for row in shown)]
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
        Text(f"{len(ended)} of {len(rows)} boards"),
    )
    return Group(*lines, *(Text(line) for line in hidden), bar)


def fitting(rows: Sequence[Row], height: int | None) -> Sequence[Row]:
    """Return the rows that a screen of `height` lines has room for, in their order."""
    room = len(rows) if height is None else max(1, height - _AROUND)
    if len(rows) <= room:
        return rows
    return [row for row in rows if not row.ok][:room]


def _line(name: str, step: str, took: str, result: str, widths: Sequence[int]) -> str:
    first, second, third = widths
    return f"{name:{first}}  {step:{second}}  {took:>{third}}  {result}".rstrip()


def _cells(row: Row) -> tuple[str, str, str, str]:
    from agent.cli.terminal import printable

    began = row.began if row.began is not None else time.monotonic()
    seconds = row.seconds if row.outcome is not None else time.monotonic() - began
    waits = row.outcome is None and row.began is None
    name = printable(row.name)
    if len(name) > _LONGEST_NAME:  # paths differ in their end
        name = "…" + name[1 - _LONGEST_NAME :]
    result = printable(result_of(row.outcome)) if row.outcome is not None else ""
    return name, row.step, "" if waits else f"{seconds:.1f} s", result


def _style(row: Row) -> str:
    return "" if row.outcome is None or row.ok else _unless_plain("red")


def _unless_plain(style: str) -> str:
    return "" if os.environ.get("NO_COLOR") else style


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return what sorts A2 before A10, and 1-1.2 before 1-1.10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
