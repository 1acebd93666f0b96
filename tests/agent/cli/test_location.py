"""scan, locate and assist as a person calls them: a kit on terminals, a stand-in on a socket."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import Done, cellagent
from moving_kit import MovingKit, moving_kit, path
from standin import StandIn

from agent.cli.cloud import write_standin_profile
from agent.cli.shell.table import bar
from agent.config.write import set_default_profile, set_value
from agent.location.agnss_file import parse_agnss
from agent.location.pgps_file import parse_pgps
from agent.location.position import Position

HOWTO = Path(__file__).resolve().parents[3] / "docs" / "howto" / "location.md"
COMMANDS = re.findall(r"(?m)^    cellagent (.*?)\s*(?:#.*)?$", HOWTO.read_text(encoding="utf-8"))
LAT, LON = path()[4]


@dataclass(frozen=True, slots=True)
class Bench:
    """A registered kit that stands at LAT, LON, with its companion, and a profile of it all."""

    kit: MovingKit
    standin: StandIn

    async def run(self, *words: str, **environment: str) -> Done:
        return await cellagent(
            *words, environment={"CELLAGENT_PORT": str(self.kit.port), **environment}
        )


@pytest.fixture
async def bench(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bench]:
    monkeypatch.setenv("PYTHONPATH", str(HOWTO.parents[2]))
    monkeypatch.chdir(tmp_path)
    use(standin, tmp_path)
    async with moving_kit(tmp_path) as kit:
        kit.go_to(LAT, LON)
        made = Bench(kit, standin)
        assert (await made.run("modem", "at", "AT+CFUN=1")).code == 0
        yield made


def use(standin: StandIn, folder: Path) -> None:
    """Write the profile of the stand-in, with the companion of the kit."""
    ready = {
        "urls": standin.urls,
        "organization": standin.organization,
        "project": standin.project,
        "team_id": standin.team_id,
        "credentials": standin.credentials,
    }
    write_standin_profile("sim", ready)
    set_default_profile("sim")
    set_value("kit.companion_port", str(folder / "companion"), profile="sim")


@pytest.mark.contract("D8.1", "D8.2", "C5")
@pytest.mark.parametrize("way", ["wifi", "cell", "ground-fix", None])
async def test_locate_lands_within_its_uncertainty(bench: Bench, way: str | None) -> None:
    done = await bench.run("locate", "--json", *(["--with", way] if way else []))
    assert done.code == 0, done.err
    (fix,) = done.lines
    assert list(fix) == [
        "at", "with", "lat", "lon", "uncertainty", "fulfilled_with", "cells", "access_points",
        "sources", "notes",
    ]  # fmt: skip
    assert Position(fix["lat"], fix["lon"]).distance_m(LAT, LON) <= fix["uncertainty"]
    assert fix["with"] == (way or "wifi")
    people = await bench.run("locate", *(["--with", way] if way else []))
    assert re.match(r"63\.\d{5}, 10\.\d{5} ± \d+ m\nby ", people.out)


async def test_the_switches_of_locate_reach_the_service(bench: Bench) -> None:
    plain = (await bench.run("locate", "--with", "wifi", "--json")).lines[0]
    sure = (await bench.run("locate", "--with", "wifi", "--high-confidence", "--json")).lines[0]
    assert sure["uncertainty"] > plain["uncertainty"]
    stored = await bench.run("locate", "--with", "cell", "--no-reply", "--no-fallback", "--json")
    assert (stored.code, stored.lines[0]["lat"]) == (0, None)


@pytest.mark.contract("D8.3", "D8.5", "D10.3")
async def test_the_legacy_form_is_warned_about_and_explained_when_it_is_gone(bench: Bench) -> None:
    set_value("location.legacy", "true", profile="sim")
    done = await bench.run("locate", "--with", "wifi", "--json")
    assert done.code == 0
    assert "is deprecated" in done.err
    bench.standin.cloud.settings.legacy_location = False
    gone = await bench.run("locate", "--json")
    assert gone.code == 1
    assert gone.lines[-1]["error"]["kind"] == "not-found"
    assert "legacy path is gone" in gone.lines[-1]["error"]["try"]


@pytest.mark.contract("D8.4")
async def test_refusals_have_their_exit_codes(bench: Bench) -> None:
    bad = await bench.run("locate", "--with", "wifi", "--json", CELLAGENT_ORG_TOKEN="oat_nobody")
    assert bad.code == 5
    assert '"acme" and "kits"' in bad.lines[-1]["error"]["try"]
    assert "oat_nobody" not in bad.out + bad.err
    set_value("account.project", "no-location", profile="sim")
    off = await bench.run("locate", "--with", "wifi", "--json")
    assert (off.code, off.lines[-1]["error"]["exit"]) == (5, 5)
    set_value("location.wifi", "none", profile="sim")
    none = await bench.run("locate", "--with", "wifi", "--json")
    assert (none.code, none.lines[-1]["error"]["kind"]) == (1, "nothing-heard")
    missing = await bench.run("scan", "cells", "--json", CELLAGENT_PORT="tcp://127.0.0.1:1")
    assert missing.code == 3
    assert (await bench.run("scan", "cells", "--count", "3", "--json")).code == 2
    assert (await bench.run("scan", "wifi", "--plot", "levels.gif", "--json")).code == 2
    assert (await bench.run("assist", "agnss", "--types", "18", "--json")).code == 2
    assert (await bench.run("assist", "pgps", "--start", "tomorrow", "--json")).code == 2


@pytest.mark.contract("D1.3")
async def test_an_old_firmware_is_not_spoken_for(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HOWTO.parents[2]))
    use(standin, tmp_path)
    async with moving_kit(tmp_path, firmware="mfw_nrf9160_1.2.7") as kit:
        bench = Bench(kit, standin)
        for words in (("locate",), ("assist", "agnss", "--filtered")):
            done = await bench.run(*words, "--json")
            assert done.code == 4, done.out + done.err
            assert "1.2.7" in done.lines[-1]["error"]["message"]


@pytest.mark.contract("C5")
async def test_scans_have_their_shapes_and_tables(bench: Bench, tmp_path: Path) -> None:
    (cells,) = (await bench.run("scan", "cells", "--search", "gci-default", "--json")).lines
    assert list(cells) == ["source", "radio", "on_cell", "cells", "notes"]
    assert (cells["source"], cells["on_cell"], len(cells["cells"])) == ("%NCELLMEAS", True, 5)
    table = (await bench.run("scan", "cells")).out.splitlines()
    assert table[0].split()[:2] == ["cell", "EARFCN"]
    assert [line[0] for line in table[1:4]] == ["*", " ", " "]
    assert all(len(line) <= 80 for line in table)
    (wifi,) = (await bench.run("scan", "wifi", "--json")).lines
    assert list(wifi) == ["source", "accessPoints", "left_out", "notes"]
    assert set(wifi["accessPoints"][0]) == {"macAddress", "signalStrength", "ssid", "channel"}
    again = tmp_path / "kept.json"
    again.write_text(json.dumps(wifi))
    set_value("location.wifi", f"file:{again}", profile="sim")
    (kept,) = (await bench.run("scan", "wifi", "--json")).lines
    assert (kept["source"], kept["accessPoints"]) == ("file", wifi["accessPoints"])
    table = (await bench.run("scan", "wifi")).out.splitlines()
    assert table[0].split() == ["BSSID", "name", "channel", "dBm", "level", "not", "sent"]
    assert all(len(line) <= 80 for line in table)


async def test_scans_are_drawn(bench: Bench, tmp_path: Path) -> None:
    once, often = tmp_path / "once.png", tmp_path / "often.svg"
    assert (await bench.run("scan", "wifi", "--plot", str(once))).code == 0
    assert once.read_bytes().startswith(b"\x89PNG")
    done = await bench.run("scan", "cells", "--repeat", "3", "--plot", str(often), "--json")
    assert (done.code, len(done.lines)) == (0, 3)
    assert b"<svg" in often.read_bytes()
    drawn = await bench.run("scan", "cells", "--plot", "-")
    assert drawn.code == 0
    assert max(map(len, drawn.out.splitlines())) <= 80


@pytest.mark.contract("D8.2")
async def test_assistance_is_kept_and_shown(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "agnss.bin"
    done = await bench.run("assist", "agnss", "--types", "8,2,9", "--out", str(out), "--json")
    assert (done.code, list(done.lines[0])) == (0, ["bytes", "blocks"])
    assert done.lines[0]["bytes"] == out.stat().st_size
    assert [one["type"] for one in done.lines[0]["blocks"]] == [2, 8, 9]
    where = parse_agnss(out.read_bytes())[1].values[0]
    assert (
        Position(where["lat"] * 90 / 2**23, where["lon"] * 360 / 2**24).distance_m(LAT, LON) < 3e3
    )
    out = tmp_path / "pgps.bin"
    done = await bench.run("assist", "pgps", "--count", "4", "--out", str(out), "--json")
    assert (done.code, list(done.lines[0])) == (0, ["bytes", "until", "predictions"])
    assert len(parse_pgps(out.read_bytes()).predictions) == len(done.lines[0]["predictions"]) == 4
    table = (await bench.run("assist", "pgps", "--count", "2")).out.splitlines()
    assert table[0].split() == ["valid", "from", "satellites"]
    assert len(table) == 3


async def test_every_command_of_the_howto_runs_as_it_stands(bench: Bench) -> None:
    assert len(COMMANDS) >= 9
    for command in COMMANDS:
        done = await bench.run(*shlex.split(command))
        assert done.code == 0, (command, done.err)
        assert done.out


@pytest.mark.parametrize(
    ("value", "drawn"),
    [(None, "····"), (True, "····"), (-140, "····"), (-200, "····"), (-105, "██··"), (0, "████")],
)
def test_a_bar_is_as_wide_whatever_it_shows(value: object, drawn: str) -> None:
    assert bar(value, -140, -70, 4) == drawn


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
