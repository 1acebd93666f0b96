"""The tray on a terminal: how many are in which state, the tray as it lies, who needs a hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent.cli.framework.safe_text import printable
from agent.provisioning.running.tray import Slot, SlotState, Tray
from at.protocol.counts import counted

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from agent.provisioning.running.outcome import Outcome

_LONGEST_NAME = 26
_GAP = "  "
_STYLES = {
    SlotState.FAIL: "bold white on red",
    SlotState.BUSY: "black on yellow",
    SlotState.UNLABELLED: "black on yellow",
    SlotState.WORKING: "cyan",
    SlotState.WAITING: "cyan",
    SlotState.PASS: "green",
    SlotState.EMPTY: "dim",
}
_QUIET = {SlotState.PASS, SlotState.EMPTY}
"""What the map says of these is all there is to say."""


class Below(Struct, frozen=True):
    """The lines below the table: what was said last, whether it is a warning, what is typed."""

    said: str = ""
    warns: bool = False
    prompt: str = ""


_NOTHING = Below()


def result_of(outcome: Outcome) -> str:
    """Return how a board ended, and why."""
    return outcome.outcome + (f": {outcome.reason}" if outcome.reason else "")


def drawn(tray: Tray, now: float, width: int, height: int | None, below: Below = _NOTHING) -> Group:
    """Return the tray for `rich`, at most `height` lines high; None: no limit. `now` is monotonic.

    Where the boards do not all fit, the tray is drawn as it lies, and below it those that need a
    hand or are at work, worst first.
    """
    from rich.console import Group

    slots = tray.ordered()
    last = [_line(below.said, "bold white on red" if below.warns else "")] if below.said else []
    if below.prompt:
        last.append(_line(below.prompt, "bold"))
    # The tally, the heading and the cursor's line are no board's.
    room = None if height is None else max(1, height - 3 - len(last))
    chart: list[Text] = []
    hidden: list[Text] = []
    if tray.layout is not None or (room is not None and len(slots) > room):
        chart = _map(tray, width)
        if room is not None and len(chart) > room // 2:
            chart = []
        slots = [slot for slot in tray.by_need() if not (chart and slot.state in _QUIET)]
        room = None if room is None else max(1, room - len(chart))
    if room is not None and len(slots) > room:
        hidden = [_line(f"and {len(slots) - room + 1} more", "")]
        slots = slots[: room - 1]
    return Group(_tally(tray), *chart, *_table(slots, now), *hidden, *last)


def _tally(tray: Tray) -> Text:
    """Return how many slots are in which state; the words stand without the colours."""
    hands = sum(slot.state.needs_hand for slot in tray.slots.values())
    need = f", {hands} in need of a hand" if hands else ""
    line = _line(counted(len(tray.slots), "slots") + need, "bold")
    for state, number in tray.tally().items():
        line.append(_GAP).append(f"{number} {state.value}", _plain(_STYLES[state]))
    return line


def _map(tray: Tray, width: int) -> list[Text]:
    names = {slot.key: _short(slot.name) for slot in tray.slots.values()}
    longest = max(map(len, names.values()), default=0)
    cell = longest + 1 + max(len(state.value) for state in SlotState)
    fit = max(1, (width + len(_GAP)) // (cell + len(_GAP)))
    lines = []
    for row in tray.rows(min(tray.layout[0], fit) if tray.layout else fit):
        line = _line("", "")
        for slot in row:
            word = slot.state.value
            line.append(f"{names[slot.key]:{longest}} ").append(word, _plain(_STYLES[slot.state]))
            line.append(" " * (cell - longest - 1 - len(word)) + _GAP)
        line.rstrip()
        lines.append(line)
    return lines


def _table(slots: Sequence[Slot], now: float) -> list[Text]:
    """Return the heading and a line for each slot.

    By hand: a rich table takes a long reason's room from the columns beside it.
    """
    if not slots:
        return []
    heading = ["slot", "", "step", "time", "label", "result"]
    cells = [heading, *(_cells(slot, now) for slot in slots)]
    if not any(slot.label for slot in slots):
        cells = [[*row[:4], row[5]] for row in cells]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]) - 1)]
    lines = [_line("", "bold"), *(_line("", "") for _ in slots)]
    for number, (line, row) in enumerate(zip(lines, cells, strict=True)):
        for column, (cell, wide) in enumerate(zip(row, [*widths, 0], strict=True)):
            state = slots[number - 1].state if number and column == 1 else None
            line.append(cell, _plain(_STYLES[state]) if state else "")
            line.append(" " * (wide - len(cell)) + _GAP)
        line.rstrip()
    return lines


def _cells(slot: Slot, now: float) -> list[str]:
    took = ""
    if slot.outcome is not None:
        took = f"{slot.seconds:.1f} s"
    elif slot.state is SlotState.WORKING:
        took = f"{now - slot.began:.1f} s"
    result = _result(slot.outcome) if slot.outcome is not None else ""
    label = printable(slot.label)
    return [_short(slot.name), slot.state.value, slot.step, took, label, printable(result)]


def _result(outcome: Outcome) -> str:
    """Return why a board failed or is busy, as its state says already; else outcome and reason."""
    said = outcome.reason and outcome.outcome in {"failed", "busy"}
    return outcome.reason if said else result_of(outcome)


def _short(name: str) -> str:
    name = printable(name)
    # Paths differ in their end.
    return name if len(name) <= _LONGEST_NAME else "…" + name[1 - _LONGEST_NAME :]


def _line(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(printable(text), style=_plain(style), no_wrap=True, overflow="ellipsis")


def _plain(style: str) -> str:
    return "" if os.environ.get("NO_COLOR") else style
