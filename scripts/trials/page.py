"""Writes what bench/ or soak/ measured as a page with a picture: each figure beside its goal."""

from __future__ import annotations

import html
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import environment
import msgspec

from trials.measure import Row

DOCS = environment.ROOT / "docs"
TITLES = {
    "bench": "Figures: what is fast, and beside what",
    "soak": "Soaks: what was broken on purpose, and what that lost",
}
_BAR, _LINE, _LEFT, _WIDTH = 14, 20, 430, 960
_PLOT_HIGH = 220
_MOST = 2.0
"""Times the goal, at which a bar ends."""


@dataclass(frozen=True, slots=True)
class Run:
    """The last whole run of a module."""

    about: str
    commit: str
    day: str
    machine: str
    rows: list[Row]


Runs = dict[str, Run]


@dataclass(frozen=True, slots=True)
class Fault:
    """Where something that can go wrong is tried: a module of soak/, tests of the suite."""

    soak: str = ""
    tests: tuple[str, ...] = ()


class Page:
    """The page of a folder's modules, from the last whole run of each.

    What a run found is kept beside the modules, with the commit, the day and the machine: a run of
    all that was stopped goes on, and the page says of each figure where it comes from.
    """

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        self._folder = folder
        self._kept = environment.ROOT / folder / "kept.json"
        last = (
            msgspec.json.decode(self._kept.read_bytes(), type=Runs) if self._kept.exists() else {}
        )
        self._runs = {name: last[name] for name in names if name in last}
        self._lacking = [name for name in names if name not in last]

    def is_new(self, name: str) -> bool:
        """Return whether nothing that the module depends on changed since it was run."""
        return name in self._runs and self._runs[name].commit == self._commit()

    def keep(self, name: str, about: str, rows: Sequence[Row]) -> None:
        """Keep the rows of a module in place of its last ones, and write the page anew."""
        machine = f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}, "
        machine += f"{platform.python_implementation()} {platform.python_version()}"
        day = datetime.now(UTC).date().isoformat()
        self._runs[name] = Run(about, self._commit(), day, machine, list(rows))
        self._lacking = [each for each in self._lacking if each != name]
        told = msgspec.json.encode(dict(sorted(self._runs.items())))
        self._kept.write_bytes(msgspec.json.format(told, indent=1) + b"\n")
        self._write()

    def _commit(self) -> str:
        """Return the last commit that changed what a run depends on."""
        own = ("at", "agent", "scripts", self._folder, f":!{self._folder}/{self._kept.name}")
        words = ["git", "log", "-1", "--format=%h", "--abbrev=12", "--", *own]
        return subprocess.run(
            words, cwd=environment.ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()

    def _write(self) -> None:
        page = DOCS / "reference" / f"{self._folder}.md"
        picture = DOCS / "pictures" / f"{self._folder}.svg"
        runs = dict(sorted(self._runs.items()))
        picture.write_text(_drawn((name, row) for name, run in runs.items() for row in run.rows))
        lacking = f"\nNot run whole yet: {', '.join(self._lacking)}.\n" if self._lacking else ""
        page.write_text(
            f"# {TITLES[self._folder]}\n\n"
            f"The last whole run of each module, written by `scripts/{self._folder} --page`.\n"
            "A figure is judged by the goal beside it: a share of what was measured next to it in\n"
            "the same run, wherever a machine's speed counts. What misses its goal is said.\n"
            f"{lacking}\n"
            f"![each figure as a share of its goal](../pictures/{picture.name})\n\n"
            + _curves(page.stem, runs)
            + _peers(runs)
            + (_catalogue(runs) if self._folder == "soak" else "")
            + "\n".join(_section(name, run) for name, run in runs.items())
        )


def _peers(runs: Runs) -> str:
    """Return the table of what released tools and libraries need for the same, if any does."""
    rows = [row for run in runs.values() for row in run.rows if row.peer and not row.skipped]
    if not rows:
        return ""
    lines = [
        "## Beside others",
        "",
        "| what | ours | theirs | ours of theirs |",
        "|---|---|---|---|",
    ]
    for row in rows:
        assert row.peer is not None
        name, theirs = row.peer
        ours, unit = f"{row.value:.4g} {row.unit}", row.unit
        lines.append(
            f"| {row.what} | {ours} | {theirs:.4g} {unit}, {name} | {row.value / theirs:.2f} |"
        )
    return "\n".join([*lines, "", ""])


def _curves(stem: str, runs: Runs) -> str:
    """Draw the curves, if there are any; return what shows them on the page."""
    rows = [row for run in runs.values() for row in run.rows if len(row.points) > 1]
    if not rows:
        return ""
    picture = DOCS / "pictures" / f"{stem}-growth.svg"
    plots = [_plotted(number % 3, number // 3, row) for number, row in enumerate(rows)]
    height = _PLOT_HIGH * (1 + (len(rows) - 1) // 3)
    picture.write_text(_svg(height, plots))
    return f"![what grows with its size, and what does not](../pictures/{picture.name})\n\n"


def _plotted(column: int, line: int, row: Row) -> str:
    """Return one curve in its place: sizes by their logarithm, costs from 0."""
    x, y = 30 + column * _WIDTH / 3, line * _PLOT_HIGH
    wide, high = _WIDTH / 3 - 90, _PLOT_HIGH - 90
    sizes = [math.log10(1 + size) for size, _ in row.points]
    most = max(cost for _, cost in row.points) or 1.0
    at = [
        (
            x + 10 + wide * (size - sizes[0]) / (sizes[-1] - sizes[0]),
            y + 40 + high * (1 - cost / most),
        )
        for size, (_, cost) in zip(sizes, row.points, strict=True)
    ]
    dots = "".join(
        f'<circle cx="{cx:.0f}" cy="{cy:.0f}" r="3" fill="#2e5d8a"/>'
        f'<text x="{cx:.0f}" y="{cy - 8:.0f}" text-anchor="middle">{cost:.3g}</text>'
        f'<text x="{cx:.0f}" y="{y + high + 58:.0f}" text-anchor="middle">{_short(size)}</text>'
        for (cx, cy), (size, cost) in zip(at, row.points, strict=True)
    )
    path = " ".join(f"{cx:.0f},{cy:.0f}" for cx, cy in at)
    unit = row.control.partition(" at ")[0]
    return (
        f'<text x="{x:.0f}" y="{y + 18:.0f}">{html.escape(row.what)}, {unit}</text>'
        '<g fill="none" stroke="#8a8d93">'
        f'<path d="M{x:.0f} {y + 30:.0f}V{y + 40 + high:.0f}h{wide + 30:.0f}"/>'
        f'<polyline points="{path}" stroke="#2e5d8a" stroke-width="2"/></g>{dots}'
    )


def _short(size: float) -> str:
    return f"{size / 1000:.0f}k" if size >= 1000 else f"{size:.0f}"


def faults() -> dict[str, dict[str, Fault]]:
    """Return what can go wrong by its place and its name, as soak/faults.toml has it."""
    listed = (environment.ROOT / "soak" / "faults.toml").read_bytes()
    return msgspec.toml.decode(listed, type=dict[str, dict[str, Fault]])


def _catalogue(runs: Runs) -> str:
    """Return the table of all faults, with what the last runs counted of each."""
    lines = [
        "## Faults",
        "",
        "How often each was injected in the last runs of the modules that are named, and how many",
        "times it was survived or lost. The module `suite` counts cases of tests, each with",
        "its own examples; which they are stands in `soak/faults.toml`.",
        "",
        "| where | fault | modules | injected | survived | lost |",
        "|---|---|---|---|---|---|",
    ]
    rows = [row for run in runs.values() for row in run.rows if row.fault and not row.skipped]
    for place, named in faults().items():
        for name, fault in named.items():
            modules = ", ".join([fault.soak] * bool(fault.soak) + ["suite"] * bool(fault.tests))
            seen = [row for row in rows if row.fault == name]
            injected, lost = sum(row.injected for row in seen), sum(row.value for row in seen)
            counts = f"{injected:,} | {injected - lost:,.0f} | {lost:,.0f}" if seen else "| | "
            lines.append(f"| {place} | {name} | {modules} | {counts} |")
    return "\n".join([*lines, "", ""])


def _section(name: str, run: Run) -> str:
    origin = f"On {run.day}, at commit `{run.commit}`, on {run.machine}."
    head = ["| what | figure | goal | beside |", "|---|---|---|---|"]
    lines = [f"## {name}", "", run.about, "", origin, "", *head]
    for row in run.rows:
        figure = f"not measured: {row.skipped}" if row.skipped else f"{row.value:.4g} {row.unit}"
        goal = "" if row.goal is None else f"{row.goal:.3g}"
        missed = "" if row.ok else " **missed**"
        cells = (row.what, figure, goal + missed, row.control)
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join([*lines, ""])


def _drawn(rows: Iterable[tuple[str, Row]]) -> str:
    """Return a bar for each figure with a goal above 0: how much of the goal it takes."""
    shown = [(name, row) for name, row in rows if row.goal and not row.skipped]
    whole = _WIDTH - _LEFT - 90
    goal_x = _LEFT + whole / _MOST
    parts = []
    for number, (name, row) in enumerate(shown):
        assert row.goal is not None
        share, y = row.value / row.goal, 30 + number * _LINE
        width = max(1.0, whole * min(share, _MOST) / _MOST)
        colour = "#2e7d4f" if row.ok else "#b3261e"
        words = html.escape(f"{name}: {row.what}"[:62])
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{words}</text>'
            f'<rect x="{_LEFT}" y="{y}" width="{width:.0f}" height="{_BAR}" fill="{colour}"/>'
            f'<text x="{_LEFT + width + 6:.0f}" y="{y + 11}">{100 * share:.0f} %</text>'
        )
    height = 40 + len(shown) * _LINE
    goal = (
        f'<text x="{goal_x:.0f}" y="20" text-anchor="middle">the goal</text>'
        f'<path d="M{goal_x:.0f} 24V{height}" stroke="#8a8d93" stroke-dasharray="4 3"/>'
    )
    return _svg(height, [goal, *parts])


def _svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#1b1b1f">'
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>' + "".join(parts) + "</svg>\n"
    )
