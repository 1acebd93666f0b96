"""`cellagent scan` as a person calls it, on a kit on terminals, and its plots: real files."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from agent.cli.scan import SignalLevel, check_target, terminal_plot, write_plot
from agent.config.write import set_value
from agent.errors import UsageError
from tests.support.cloud.standin import StandIn
from tests.support.commands.command_line import cellagent
from tests.support.location.located_kit import LocatedKit
from tests.support.location.moving_kit import moving_kit

HOWTO = Path(__file__).resolve().parents[3] / "docs" / "howto" / "location.md"


@pytest.mark.contract("C5")
async def test_scans_have_their_shapes_and_tables(located_kit: LocatedKit, tmp_path: Path) -> None:
    (cells,) = (await located_kit.run("scan", "cells", "--search", "gci-default", "--json")).lines
    assert list(cells) == ["source", "radio", "on_cell", "cells", "notes"]
    assert (cells["source"], cells["on_cell"], len(cells["cells"])) == ("%NCELLMEAS", True, 5)
    table = (await located_kit.run("scan", "cells")).out.splitlines()
    assert table[0].split()[:2] == ["cell", "EARFCN"]
    assert [line[0] for line in table[1:4]] == ["*", " ", " "]
    assert all(len(line) <= 80 for line in table)
    (wifi,) = (await located_kit.run("scan", "wifi", "--json")).lines
    assert list(wifi) == ["source", "accessPoints", "left_out", "notes"]
    assert set(wifi["accessPoints"][0]) == {"macAddress", "signalStrength", "ssid", "channel"}
    again = tmp_path / "kept.json"
    again.write_text(json.dumps(wifi))
    set_value("location.wifi", f"file:{again}", profile="sim")
    (kept,) = (await located_kit.run("scan", "wifi", "--json")).lines
    assert (kept["source"], kept["accessPoints"]) == ("file", wifi["accessPoints"])
    table = (await located_kit.run("scan", "wifi")).out.splitlines()
    assert table[0].split() == ["BSSID", "name", "channel", "dBm", "level", "not", "sent"]
    assert all(len(line) <= 80 for line in table)


async def test_scans_are_drawn(located_kit: LocatedKit, tmp_path: Path) -> None:
    once, often = tmp_path / "once.png", tmp_path / "often.svg"
    assert (await located_kit.run("scan", "wifi", "--plot", str(once))).code == 0
    assert once.read_bytes().startswith(b"\x89PNG")
    done = await located_kit.run("scan", "cells", "--repeat", "3", "--plot", str(often), "--json")
    assert (done.code, len(done.lines)) == (0, 3)
    assert b"<svg" in often.read_bytes()
    drawn = await located_kit.run("scan", "cells", "--plot", "-")
    assert drawn.code == 0
    assert max(map(len, drawn.out.splitlines())) <= 80


async def test_ctrl_c_stops_the_measurement_and_leaves_the_modem_free(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HOWTO.parents[2]))
    async with moving_kit(tmp_path, instant=False) as kit:
        port = {"CELLAGENT_PORT": str(kit.port)}
        assert (await cellagent("modem", "at", "AT+CFUN=1", environment=port)).code == 0
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agent", "scan", "cells", "--search", "extended-complete"),
            env={**os.environ, **port},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        # Another process starts up: there is no event to wait for.
        while kit.modem.kit.session.measurement is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 130
        assert b"Traceback" not in errors
        assert kit.modem.kit.session.measurement is None, errors


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_disk_that_is_full_is_told_by_the_file_of_the_plot(tmp_path: Path) -> None:
    target = tmp_path / "levels.png"
    target.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as failed:
        write_plot(ONCE, "Wi-Fi", target)
    assert failed.value.filename == str(target)


def test_another_kind_of_file_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(UsageError, match=r"\.png or \.svg"):
        check_target(Path("levels.gif"))


@pytest.mark.parametrize("levels", [ONCE, OVER_TIME])
def test_a_plot_of_characters_fits_the_terminal_and_holds_no_colour(
    levels: list[SignalLevel],
) -> None:
    drawn = terminal_plot(levels, "cells")
    assert "\x1b" not in drawn
    assert max(len(line) for line in drawn.splitlines()) <= 78
    assert len(drawn.splitlines()) >= 10


def test_one_scan_is_a_bar_a_row_the_strongest_on_top() -> None:
    rows = terminal_plot(ONCE, "cells").splitlines()[2:14]
    assert [row.partition("\u2524")[0].strip() for row in rows] == [one.name for one in ONCE]
    lengths = [row.count("\u2588") for row in rows]
    # 16 dB make the whole width, and each bar is 1 dB shorter than the one above it.
    assert [round(16 * length / lengths[0]) for length in lengths] == list(range(16, 4, -1))
