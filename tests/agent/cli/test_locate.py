"""`cellagent locate` as a person calls it: a kit on terminals, a stand-in on a socket."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.config.write import set_value
from agent.location.position import Position
from tests.support.cloud.standin import StandIn
from tests.support.location.located_kit import LAT, LON, LocatedKit, use_profile_with_companion
from tests.support.location.moving_kit import moving_kit

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.contract("D8.1", "D8.2", "C5")
@pytest.mark.parametrize("way", ["wifi", "cell", "ground-fix", None])
async def test_locate_lands_within_its_uncertainty(
    located_kit: LocatedKit, way: str | None
) -> None:
    done = await located_kit.run("locate", "--json", *(["--with", way] if way else []))
    assert done.code == 0, done.err
    (fix,) = done.lines
    assert list(fix) == [
        "at", "with", "lat", "lon", "uncertainty", "fulfilled_with", "cells", "access_points",
        "sources", "notes",
    ]  # fmt: skip
    assert Position(fix["lat"], fix["lon"]).distance_m(LAT, LON) <= fix["uncertainty"]
    assert fix["with"] == (way or "wifi")
    people = await located_kit.run("locate", *(["--with", way] if way else []))
    assert re.match(r"63\.\d{5}, 10\.\d{5} ± \d+ m\nby ", people.out)


async def test_a_kit_that_is_not_plugged_in_is_told_where_its_wifi_is_enough(
    located_kit: LocatedKit,
) -> None:
    done = await located_kit.run("locate", "--with", "wifi", "--json", CELLAGENT_PORT="serial:1")
    # Whether it then is located depends on this host's own Wi-Fi.
    assert "no kit with serial number 1 is plugged in: this host is located by" in done.err


async def test_a_companion_that_is_not_set_is_no_trouble_where_no_wifi_is_asked_for(
    located_kit: LocatedKit,
) -> None:
    set_value("location.wifi", "companion", profile="sim")
    set_value("kit.companion_port", "", profile="sim")
    done = await located_kit.run("locate", "--json")
    assert (done.code, done.lines[0]["error"]["kind"]) == (2, "usage")
    done = await located_kit.run("locate", "--with", "cell", "--json")
    assert (done.code, done.lines[0]["with"]) == (0, "cell"), done.out


async def test_the_switches_of_locate_reach_the_service(located_kit: LocatedKit) -> None:
    plain = (await located_kit.run("locate", "--with", "wifi", "--json")).lines[0]
    sure = (await located_kit.run("locate", "--with", "wifi", "--high-confidence", "--json")).lines[
        0
    ]
    assert sure["uncertainty"] > plain["uncertainty"]
    stored = await located_kit.run(
        "locate", "--with", "cell", "--no-reply", "--no-fallback", "--json"
    )
    assert (stored.code, stored.lines[0]["lat"]) == (0, None)


@pytest.mark.contract("D8.3", "D8.5", "D10.3")
async def test_the_legacy_form_is_warned_about_and_explained_when_it_is_gone(
    located_kit: LocatedKit,
) -> None:
    set_value("location.legacy", "true", profile="sim")
    done = await located_kit.run("locate", "--with", "wifi", "--json")
    assert done.code == 0
    assert "is deprecated" in done.err
    located_kit.standin.cloud.settings.legacy_location = False
    gone = await located_kit.run("locate", "--json")
    assert gone.code == 1
    assert gone.lines[-1]["error"]["kind"] == "not-found"
    assert "legacy path is gone" in gone.lines[-1]["error"]["try"]


@pytest.mark.contract("D8.4")
async def test_refusals_have_their_exit_codes(located_kit: LocatedKit) -> None:
    bad = await located_kit.run(
        "locate", "--with", "wifi", "--json", CELLAGENT_ORG_TOKEN="oat_nobody"
    )
    assert bad.code == 5
    assert '"acme" and "kits"' in bad.lines[-1]["error"]["try"]
    assert "oat_nobody" not in bad.out + bad.err
    set_value("account.project", "no-location", profile="sim")
    off = await located_kit.run("locate", "--with", "wifi", "--json")
    assert (off.code, off.lines[-1]["error"]["exit"]) == (5, 5)
    set_value("location.wifi", "none", profile="sim")
    none = await located_kit.run("locate", "--with", "wifi", "--json")
    assert (none.code, none.lines[-1]["error"]["kind"]) == (1, "nothing-heard")
    missing = await located_kit.run("scan", "cells", "--json", CELLAGENT_PORT="tcp://127.0.0.1:1")
    assert missing.code == 3
    assert (await located_kit.run("scan", "cells", "--count", "3", "--json")).code == 2
    assert (await located_kit.run("scan", "wifi", "--plot", "levels.gif", "--json")).code == 2
    assert (await located_kit.run("assist", "agnss", "--types", "18", "--json")).code == 2
    assert (await located_kit.run("assist", "pgps", "--start", "tomorrow", "--json")).code == 2


@pytest.mark.contract("D1.3")
async def test_an_old_firmware_is_not_spoken_for(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    use_profile_with_companion(standin, tmp_path)
    async with moving_kit(tmp_path, firmware="mfw_nrf9160_1.2.7") as kit:
        located_kit = LocatedKit(kit, standin)
        for words in (("locate",), ("assist", "agnss", "--filtered")):
            done = await located_kit.run(*words, "--json")
            assert done.code == 4, done.out + done.err
            assert "1.2.7" in done.lines[-1]["error"]["message"]
