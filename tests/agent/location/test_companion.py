"""Wi-Fi from an ESP-AT on a real terminal, and how the profile's word leads to a source."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from moving_kit import moving_kit
from pty_far_end import PtyFarEnd

from agent.errors import UsageError
from agent.location.access_points import AccessPoint, select_usable
from agent.location.wifi.choice import FirstAvailable, wifi_source
from agent.location.wifi.companion import WifiCompanion
from agent.location.wifi.file import WifiFile
from agent.location.wifi.iw import Iw
from agent.location.wifi.networkmanager import NetworkManager
from agent.location.wifi.scanner import WifiScan, WifiUnavailable


@pytest.mark.contract("C5", "D8.1")
async def test_a_companion_that_echoes_tells_what_it_hears(tmp_path: Path) -> None:
    async with moving_kit(tmp_path) as kit:
        source = WifiCompanion(str(kit.companion))
        first = await source.scan(10.0)
        assert first.source == "companion"
        assert len(select_usable(first.points).usable) >= 2
        assert all(point.channel and point.ssid for point in first.points)
        kit.go_to(63.415688, 10.418089)
        moved = await source.scan(10.0)
        assert {point.bssid for point in moved.points} != {point.bssid for point in first.points}


def esp_at(lines: bytes) -> object:
    """Answer as a companion does that knows no CMEE, and hears `lines`."""

    def answer(command: bytes) -> bytes:
        word = command.strip()
        if word in {b"", b"AT+CMEE?"}:
            return b"\r\nERROR\r\n" if word else b""
        return lines + b"\r\nOK\r\n" if word == b"AT+CWLAP" else b"\r\nOK\r\n"

    return answer


async def test_names_may_hold_what_separates_fields() -> None:
    far = PtyFarEnd(
        esp_at(b'+CWLAP:(3,"a,\\"b\\")",-60,"40:01:7a:00:00:01",1)\r\n'
               b'+CWLAP:(0,"",-80,"40:01:7A:00:00:02")\r\n'),
        terminator=b"\n",
    )  # fmt: skip
    try:
        scan = await WifiCompanion(far.path).scan(10.0)
    finally:
        far.unplug()
    assert scan.points[1] == AccessPoint("40:01:7a:00:00:02", -80)
    assert (scan.points[0].rssi_dbm, scan.points[0].channel) == (-60, 1)


async def test_a_companion_that_is_none_is_said_to_be() -> None:
    far = PtyFarEnd(esp_at(b"+CWLAP:(nonsense"), terminator=b"\n")  # type: ignore[arg-type]
    try:
        with pytest.raises(WifiUnavailable, match=r"the Wi-Fi companion on .*CWLAP"):
            await WifiCompanion(far.path).scan(10.0)
    finally:
        far.unplug()
    with pytest.raises(WifiUnavailable, match="on tcp://") as told:
        await WifiCompanion("tcp://127.0.0.1:1").scan(1.0)
    assert told.value.hint


def test_a_word_of_the_profile_is_a_source(tmp_path: Path) -> None:
    assert wifi_source("none") is None
    assert wifi_source("iw") == Iw()
    assert wifi_source("networkmanager") == NetworkManager()
    assert wifi_source(f"file:{tmp_path}") == WifiFile(tmp_path)
    assert wifi_source("file:~/scan.json") == WifiFile(Path.home() / "scan.json")
    assert wifi_source("companion", "/dev/ttyUSB1") == WifiCompanion("/dev/ttyUSB1")
    assert wifi_source("auto", "/dev/ttyUSB1") == WifiCompanion("/dev/ttyUSB1")


def test_a_word_that_is_no_source_is_told_which_there_are() -> None:
    with pytest.raises(UsageError, match="networkmanager, iw, companion"):
        wifi_source("wpa_supplicant")
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
    assert told.value.hint == "mend D-Bus in 2 s"
    with contextlib.suppress(WifiUnavailable):  # whatever this host has: no other failure
        await FirstAvailable((NetworkManager(), Iw())).scan(2.0)
