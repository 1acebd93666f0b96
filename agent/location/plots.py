"""Plots of scans: levels by cell or access point, or over time (the `plot` extra)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UsageError

SUFFIXES = (".png", ".svg")
_HEIGHT = 15
_INSTALL = "pip install 'cellagent[plot]'"


@dataclass(frozen=True, slots=True)
class SignalLevel:
    """A level in dBm of a cell or access point; `at_s` is the time since the first scan."""

    name: str
    dbm: int
    at_s: float = 0.0


def check_target(path: Path) -> None:
    """Raise UsageError for a file that is no picture, before anything is measured."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a file that ends in {' or '.join(SUFFIXES)}")


def write_plot(levels: Sequence[SignalLevel], title: str, path: Path) -> None:
    """Draw levels into a PNG or SVG file: bars for one scan, lines over time for several."""
    check_target(path)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("a plot in a file needs an extra", hint=_INSTALL) from error
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title)
    if _over_time(levels):
        for place, (name, own) in enumerate(_by_name(levels)):
            # The colours come round after ten: then another kind of line.
            style = ("-", "--", ":")[place // 10 % 3]
            axes.plot(
                [one.at_s for one in own], [one.dbm for one in own], style, marker="o", label=name
            )
        axes.set_xlabel("time in s")
        axes.set_ylabel("level in dBm")
        figure.legend(fontsize="small", loc="outside right upper")
    else:
        names, floor, tops = _bars(levels)
        axes.barh(names, [top - floor for top in tops], left=floor)
        axes.set_xlabel("level in dBm")
    figure.savefig(str(path))


def terminal_plot(levels: Sequence[SignalLevel], title: str, *, width: int) -> str:
    """Return a plot made of characters, `width` columns wide, without colours."""
    try:
        import plotext
    except ImportError as error:
        raise UsageError("a plot in the terminal needs an extra", hint=_INSTALL) from error
    figure = plotext.figure
    figure.clear()
    figure.title(title)
    if _over_time(levels):
        figure.plot_size(width, _HEIGHT)
        for name, own in _by_name(levels):
            signal = figure.signal([one.at_s for one in own], [one.dbm for one in own])
            figure.draw(signal.label(name))
    elif levels:
        names, floor, tops = _bars(levels)
        # One row a bar, and four for the frame, the axis and the title.
        figure.plot_size(width, len(names) + 4)
        floors = [floor] * len(names)
        figure.draw(figure.bar(names, floors, tops, orientation="horizontal", width=0.01))
        # Left to itself it ends the axis before the longest bar.
        figure.ruler("x").lim(floor, tops[-1])
    return str(plotext.uncolorize(str(figure.build())))


def _by_name(levels: Sequence[SignalLevel]) -> list[tuple[str, list[SignalLevel]]]:
    names = dict.fromkeys(level.name for level in levels)
    return [(name, [level for level in levels if level.name == name]) for name in names]


def _bars(levels: Sequence[SignalLevel]) -> tuple[list[str], int, list[int]]:
    """Return names, where the bars begin, and where each ends; the strongest last, on top."""
    ordered = sorted(levels, key=lambda level: level.dbm)
    floor = min((level.dbm for level in ordered), default=-100) - 5
    return [level.name for level in ordered], floor, [level.dbm for level in ordered]


def _over_time(levels: Sequence[SignalLevel]) -> bool:
    return len({level.at_s for level in levels}) > 1
