"""Writes what bench/ or soak/ measured as a page with a picture: each figure beside its goal."""

from __future__ import annotations

import html
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from measure import Row

DOCS = Path(__file__).resolve().parent.parent / "docs"
TITLES = {
    "bench": "Figures: what is fast, and beside what",
    "soak": "Soaks: what was broken on purpose, and what that lost",
}
_BAR, _LINE, _LEFT, _WIDTH = 14, 20, 430, 960
_MOST = 2.0
"""Times the goal, at which a bar ends."""


def write(folder: str, measured: Mapping[str, tuple[str, Sequence[Row]]]) -> Path:
    """Write the page of a folder's modules; `measured` has what each is about, and its rows."""
    page = DOCS / "reference" / f"{folder}.md"
    picture = DOCS / "pictures" / f"{folder}.svg"
    rows = [(name, row) for name, (_, its) in measured.items() for row in its]
    picture.write_text(_drawn(rows))
    sections = [_section(name, about, its) for name, (about, its) in measured.items()]
    day = datetime.now(UTC).date().isoformat()
    where = f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}, "
    where += f"{platform.python_implementation()} {platform.python_version()}"
    page.write_text(
        f"# {TITLES[folder]}\n\n"
        f"Written by `scripts/{folder} --page` on {day}, on {where}.\n"
        "A figure is judged by the goal beside it, which is a share of what was measured next to\n"
        "it in the same run wherever a machine's speed counts. What misses its goal is said.\n\n"
        f"![each figure as a share of its goal](../pictures/{picture.name})\n\n"
        + "\n".join(sections)
    )
    return page


def _section(name: str, about: str, rows: Iterable[Row]) -> str:
    lines = [f"## {name}", "", about, "", "| what | figure | goal | beside |", "|---|---|---|---|"]
    for row in rows:
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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#1b1b1f">'
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
        f'<text x="{goal_x:.0f}" y="20" text-anchor="middle">the goal</text>'
        f'<path d="M{goal_x:.0f} 24V{height}" stroke="#8a8d93" stroke-dasharray="4 3"/>'
        + "".join(parts)
        + "</svg>\n"
    )
