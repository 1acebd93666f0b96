"""Pictures of scans: real files, real characters."""

from __future__ import annotations

import struct
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from agent.cli.scan import SignalLevel, check_target, terminal_plot, write_plot
from agent.errors import UsageError

ONCE = [SignalLevel(f"40:01:7a:00:00:{n:02x}", -40 - n) for n in range(12)]
OVER_TIME = [SignalLevel(name, -60 - step, step * 5.0) for name in "ab" for step in range(4)]


@pytest.mark.parametrize("levels", [ONCE, OVER_TIME, [], [SignalLevel("$a_1 <b>&", -70)]])
def test_a_png_is_one(tmp_path: Path, levels: list[SignalLevel]) -> None:
    target = tmp_path / "levels.png"
    write_plot(levels, "Wi-Fi", target)
    data = target.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width >= 640
    assert height >= 360


@pytest.mark.parametrize("levels", [ONCE, OVER_TIME, [], [SignalLevel("$a_1 <b>&", -70)]])
def test_an_svg_is_well_formed(tmp_path: Path, levels: list[SignalLevel]) -> None:
    target = tmp_path / "levels.SVG"
    write_plot(levels, "cells", target)
    assert ET.parse(target).getroot().tag.endswith("svg")


def test_another_kind_of_file_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(UsageError, match=r"\.png or \.svg"):
        check_target(Path("levels.gif"))


@pytest.mark.parametrize("levels", [ONCE, OVER_TIME])
def test_a_plot_of_characters_fits_the_terminal_and_holds_no_colour(
    levels: list[SignalLevel],
) -> None:
    drawn = terminal_plot(levels, "cells", width=78)
    assert "\x1b" not in drawn
    assert max(len(line) for line in drawn.splitlines()) <= 78
    assert len(drawn.splitlines()) >= 10


def test_one_scan_is_a_bar_a_row_the_strongest_on_top() -> None:
    rows = terminal_plot(ONCE, "cells", width=78).splitlines()[2:14]
    assert [row.partition("\u2524")[0].strip() for row in rows] == [one.name for one in ONCE]
    lengths = [row.count("\u2588") for row in rows]
    # 16 dB make the whole width, and each bar is 1 dB shorter than the one above it.
    assert [round(16 * length / lengths[0]) for length in lengths] == list(range(16, 4, -1))
