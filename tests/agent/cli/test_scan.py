"""`cellagent scan` as a person calls it, on a kit on terminals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from command_line import cellagent
from located_kit import LocatedKit
from moving_kit import moving_kit
from standin import StandIn

from agent.config.write import set_value

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
        assert kit.modem.kit.session.measurement is None
