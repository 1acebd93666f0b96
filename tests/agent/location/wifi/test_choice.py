"""How `location.wifi` of a profile leads to a source of scans."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from agent.config.profile import KitSettings
from agent.errors import UsageError
from agent.location.wifi.choice import FirstAvailable, wifi_source
from agent.location.wifi.companion import WifiCompanion
from agent.location.wifi.file import WifiFile
from agent.location.wifi.iw import Iw
from agent.location.wifi.networkmanager import NetworkManager
from agent.location.wifi.scanner import WifiScan, WifiUnavailable


def test_a_word_of_the_profile_is_a_source(tmp_path: Path) -> None:
    assert wifi_source("none") is None
    assert wifi_source("iw") == Iw()
    assert wifi_source("networkmanager") == NetworkManager()
    assert wifi_source(f"file:{tmp_path}") == WifiFile(tmp_path)
    assert wifi_source("file:~/scan.json") == WifiFile(Path.home() / "scan.json")
    with_companion = KitSettings(port="virtual:", companion_port="/dev/ttyUSB1")
    assert wifi_source("companion", with_companion) == WifiCompanion("/dev/ttyUSB1")
    assert wifi_source("auto", with_companion) == WifiCompanion("/dev/ttyUSB1")


@pytest.mark.parametrize("port", ["virtual:", "virtual:kit.json"])
async def test_a_virtual_kit_hears_the_access_points_of_its_own_town(port: str) -> None:
    kit = KitSettings(port=port)
    source = wifi_source("auto", kit)
    assert source == WifiCompanion("virtual:")
    assert wifi_source("companion", kit) == source
    assert len((await source.scan(60.0)).points) > 2
    assert wifi_source("none", kit) is None


def test_a_companion_without_a_port_is_told_where_to_set_it() -> None:
    with pytest.raises(UsageError) as told:
        wifi_source("companion")
    assert "kit.companion_port" in told.value.hint


@pytest.mark.parametrize(
    ("platform", "name"),
    [("darwin", "CoreWlan"), ("win32", "WindowsWlan"), ("linux", "FirstAvailable")],
)
def test_each_system_has_its_own_way(
    platform: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert type(wifi_source("auto")).__name__ == name


class Deaf:
    def __init__(self, reason: str) -> None:
        self.reason = reason

    async def scan(self, deadline_s: float) -> WifiScan:
        raise WifiUnavailable(self.reason, hint=f"mend {self.reason} in {deadline_s:g} s")


async def test_the_next_source_is_tried_and_all_reasons_are_told(tmp_path: Path) -> None:
    scan = tmp_path / "scan.json"
    scan.write_text('[{"macAddress":"40:01:7a:00:00:01","signalStrength":-60}]')
    found = await FirstAvailable((Deaf("D-Bus"), WifiFile(scan))).scan(2.0)
    assert found.source == "file"
    with pytest.raises(WifiUnavailable, match="D-Bus; iw") as told:
        await FirstAvailable((Deaf("D-Bus"), Deaf("iw"))).scan(2.0)
    assert told.value.hint == "mend iw in 2 s"
    with contextlib.suppress(WifiUnavailable):  # whatever this host has: no other failure
        await FirstAvailable((NetworkManager(), Iw())).scan(2.0)
