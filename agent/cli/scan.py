"""`cellagent scan`: the cells and the Wi-Fi around the kit, as tables and plots."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from agent.cli.framework.command import AgentGroup, emit, note, say
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.terminal import TableWriter, bar, waiting
from agent.errors import UsageError
from agent.extras import require

if TYPE_CHECKING:
    from agent.cli.framework.session import Session
    from agent.location.cell_scan import CellScan
    from agent.location.wifi.scanner import WifiScan

Scan = TypeVar("Scan")

_SEARCHES = (
    "default", "extended-light", "extended-complete", "gci-default", "gci-extended-light",
    "gci-extended-complete",
)  # fmt: skip


@click.group(cls=AgentGroup, epilog="Example: cellagent scan wifi --plot levels.png")
def command() -> None:
    """Scan the cells around the modem, or the Wi-Fi around this host or a companion chip."""


@command.command(epilog="Example: cellagent scan cells --port /dev/ttyACM0 --search gci-default")
@click.option(
    "--search",
    type=click.Choice(_SEARCHES),
    default="default",
    show_default=True,
    help="How far it looks (AT%NCELLMEAS); others than default need modem firmware 1.3.4.",
)
@click.option("--count", type=click.IntRange(2, 15), help="Cells to list (gci searches).")
@click.option(
    "--deadline",
    "deadline_s",
    type=Seconds(1),
    default=60.0,
    show_default=True,
    help="Seconds after which a measurement is stopped.",
)
@click.option("--repeat", type=click.IntRange(1, 10_000), default=1, help="Scan so many times.")
@click.option("--plot", "target", metavar="FILE", help="A .png or .svg file; - for the terminal.")
async def cells(
    session: Session,
    search: str,
    count: int | None,
    deadline_s: float,
    repeat: int,
    target: str | None,
) -> None:
    """Measure the cells around the kit."""
    from agent.location.cell_scan import scan_cells

    _check_plot(target)
    async with session.modem() as modem:

        async def scan() -> CellScan:
            return await scan_cells(modem, search, count=count, deadline_s=deadline_s)

        await _repeated(session, scan, partial(_show_cells, session), repeat, target, "cells")


@command.command(epilog="Example: cellagent scan wifi --json")
@click.option("--repeat", type=click.IntRange(1, 10_000), default=1, help="Scan so many times.")
@click.option("--plot", "target", metavar="FILE", help="A .png or .svg file; - for the terminal.")
async def wifi(session: Session, repeat: int, target: str | None) -> None:
    """Scan for Wi-Fi access points; says which of them a location call may use."""
    from agent.location.wifi.choice import WIFI_DEADLINE_S, wifi_source
    from agent.location.wifi.scanner import WifiUnavailable

    _check_plot(target)
    profile = session.profile
    word = profile.location.wifi
    async with AsyncExitStack() as stack:
        by_module = word == "module"
        modem = await stack.enter_async_context(session.modem()) if by_module else None
        source = wifi_source(word, profile.kit, modem)
        if source is None:
            raise WifiUnavailable(
                "Wi-Fi is switched off in the profile",
                hint="`cellagent config set location.wifi auto`",
            )

        async def scan() -> WifiScan:
            return await source.scan(WIFI_DEADLINE_S)

        await _repeated(session, scan, partial(_show_wifi, session), repeat, target, "Wi-Fi")


def _check_plot(target: str | None) -> None:
    """Raise UsageError for what cannot be drawn, before anything is opened."""
    if target == "-":
        require("a plot in the terminal", "plotext")
    elif target:
        check_target(Path(target))
        require("a plot in a file", "matplotlib")


async def _repeated(
    session: Session,
    scan: Callable[[], Awaitable[Scan]],
    show: Callable[[Scan, float], list[SignalLevel]],
    repeat: int,
    target: str | None,
    title: str,
) -> None:
    """Scan so many times, show each scan, and draw the levels of all."""
    started = time.monotonic()
    levels: list[SignalLevel] = []
    for _ in range(repeat):
        async with waiting("scanning", session):
            found = await scan()
        levels += show(found, time.monotonic() - started)
    if target == "-":
        say(terminal_plot(levels, title))
    elif target:
        write_plot(levels, title, Path(target))
        note(f"drawn in {target}")


def _show_cells(session: Session, scan: CellScan, at_s: float) -> list[SignalLevel]:
    # A dash would stand for "not known"; these are known not to be the serving cell.
    entries = [
        (cell, "*" if scan.on_cell and not index else " ") for index, cell in enumerate(scan.cells)
    ]
    levels = [
        SignalLevel(_cell_name(cell), int(str(cell["rsrp"])), at_s)
        for cell in [*scan.cells, *scan.neighbors]
        if "rsrp" in cell
    ]
    if session.json:
        emit(
            {
                "source": scan.source,
                "radio": scan.radio,
                "on_cell": scan.on_cell,
                "cells": list(scan.cells),
                "notes": list(scan.notes),
            }
        )
        return levels
    table = TableWriter("", "cell", "EARFCN", "PCI", "RSRP dBm", "level", "RSRQ dB")
    for cell, mark in [*entries, *((cell, " ") for cell in scan.neighbors)]:
        level = cell.get("rsrp")
        table.add(
            mark, _cell_name(cell), cell.get("earfcn"), cell.get("pci"), level,
            bar(level, -140, -70), cell.get("rsrq"),
        )  # fmt: skip
    table.flush()
    for text in scan.notes:
        note(text)
    return levels


def _cell_name(cell: dict[str, object]) -> str:
    if "eci" in cell:
        return f"{cell['mcc']}-{cell['mnc']} {cell['tac']}/{cell['eci']}"
    return f"neighbour {cell.get('earfcn')}/{cell.get('pci')}"


def _show_wifi(session: Session, scan: WifiScan, at_s: float) -> list[SignalLevel]:
    from agent.location.access_points import MINIMUM, access_points_to_json, select_usable

    chosen = select_usable(scan.points)
    levels = [SignalLevel(point.bssid, point.rssi_dbm, at_s) for point in chosen.usable]
    if session.json:
        left_out = [
            {"macAddress": point.bssid, "reason": reason.value} for point, reason in chosen.left_out
        ]
        emit(
            {
                "source": scan.source,
                "accessPoints": access_points_to_json(chosen.usable, send_ssid=True),
                "left_out": left_out,
                "notes": list(scan.notes),
            }
        )
        return levels
    table = TableWriter("BSSID", "name", "channel", "dBm", "level", "not sent")
    rows = [(point, " ") for point in chosen.usable]
    rows += [(point, reason.value) for point, reason in chosen.left_out]
    for point, why in rows:
        name = point.ssid.decode("utf-8", "backslashreplace")
        level = bar(point.rssi_dbm, -100, -30)
        table.add(point.bssid, name, point.channel, point.rssi_dbm, level, why)
    table.flush()
    for text in scan.notes:
        note(text)
    if len(chosen.usable) < MINIMUM:
        note(f"a location call needs at least {MINIMUM} usable access points")
    return levels


@dataclass(frozen=True, slots=True)
class SignalLevel:
    """A level in dBm of a cell or access point; `at_s` is the time since the first scan."""

    name: str
    dbm: int
    at_s: float = 0.0


SUFFIXES = (".png", ".svg")
_WIDTH, _HEIGHT = 78, 15


def check_target(path: Path) -> None:
    """Raise UsageError for a file that is no picture, before anything is measured."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a plot is a file that ends in {' or '.join(SUFFIXES)}")


def write_plot(levels: Sequence[SignalLevel], title: str, path: Path) -> None:
    """Draw levels into a PNG or SVG file: bars for one scan, lines over time for several."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from agent.files.private_files import output_file

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
    with output_file(path, private=False) as file:
        figure.savefig(file, format=path.suffix[1:].lower())


def terminal_plot(levels: Sequence[SignalLevel], title: str) -> str:
    """Return a plot made of characters, which fits a terminal of 80 columns, without colours."""
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.title(title)
    if _over_time(levels):
        figure.plot_size(_WIDTH, _HEIGHT)
        for name, own in _by_name(levels):
            signal = figure.signal([one.at_s for one in own], [one.dbm for one in own])
            figure.draw(signal.label(name))
    elif levels:
        names, floor, tops = _bars(levels)
        # One row a bar, and four for the frame, the axis and the title.
        figure.plot_size(_WIDTH, len(names) + 4)
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
