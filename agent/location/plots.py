"""Scans as pictures: levels by cell or access point, or over time (the `plot` extra)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UsageError

SUFFIXES = (".png", ".svg")
_INSTALL = "pip install 'cellagent[plot]'"


@dataclass(frozen=True, slots=True)
class Level:
    """One level that was heard: who was heard, in dBm, when (seconds since the first scan)."""

    name: str
    dbm: int
    at_s: float = 0.0


def check_target(path: Path) -> None:
    """Refuse a file that could not be written as a picture, before anything is measured."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a file that ends in {' or '.join(SUFFIXES)}")


def write_plot(levels: Sequence[Level], title: str, path: Path) -> None:
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
        for name in dict.fromkeys(level.name for level in levels):
            own = [level for level in levels if level.name == name]
            axes.plot([one.at_s for one in own], [one.dbm for one in own], marker="o", label=name)
        axes.set_xlabel("time in s")
        axes.set_ylabel("level in dBm")
        axes.legend(fontsize="small")
    else:
        ordered = sorted(levels, key=lambda level: level.dbm)
        floor = min((level.dbm for level in ordered), default=-100) - 5
        names = [level.name for level in ordered]
        axes.barh(names, [level.dbm - floor for level in ordered], left=floor)
        axes.set_xlabel("level in dBm")
    figure.savefig(str(path))


def terminal_plot(levels: Sequence[Level], title: str, *, width: int) -> str:
    """Return a plot made of characters, `width` columns wide, without colours."""
    try:
        import plotext
    except ImportError as error:
        raise UsageError("a plot in the terminal needs an extra", hint=_INSTALL) from error
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, 15)
    figure.title(title)
    for name in dict.fromkeys(level.name for level in levels):
        own = [level for level in levels if level.name == name]
        signal = figure.signal([one.at_s for one in own], [one.dbm for one in own])
        figure.draw(signal.label(name))
    return str(plotext.uncolorize(str(figure.build())))


def _over_time(levels: Sequence[Level]) -> bool:
    return len({level.at_s for level in levels}) > 1
