"""A file holds a scan as the service takes it, or is refused by name."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from agent.location.access_points import AccessPoint
from agent.location.wifi.file import WifiFile
from agent.location.wifi.scanner import WifiUnavailable


@pytest.mark.parametrize(
    "text",
    [
        '[{"macAddress":"40:01:7a:00:00:01","signalStrength":-61}]',
        '{"accessPoints":[{"macAddress":"40:01:7a:00:00:01","signalStrength":-61}]}',
        '[{"macAddress":"40:01:7a:00:00:01","signalStrength":-61,"ssid":null,"age":null,"x":[]}]',
    ],
)
async def test_a_file_holds_the_scan_as_the_service_takes_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scan.json"
    path.write_text(text)
    assert (await WifiFile(path).scan(1.0)).points == (AccessPoint("40:01:7a:00:00:01", -61),)


async def test_an_age_is_in_milliseconds_there(tmp_path: Path) -> None:
    path = tmp_path / "scan.json"
    path.write_text('[{"macAddress":"40:01:7a:00:00:01","signalStrength":-61,"age":1500}]')
    (point,) = (await WifiFile(path).scan(1.0)).points
    assert point.age_s == 1.5


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "text",
    [
        '[{"macAddress":"40:01:7a:00:00:01","signalStrength":-61}]',
        "BSS 40:01:7a:00:00:01(on wlan0)\n\tsignal: -61.00 dBm\n",
    ],
    ids=["JSON", "iw"],
)
async def test_a_file_may_be_as_windows_programs_save_it(
    tmp_path: Path, text: str, encoding: str
) -> None:
    path = tmp_path / "scan.txt"
    path.write_text(text, encoding=encoding)
    assert (await WifiFile(path).scan(1.0)).points == (AccessPoint("40:01:7a:00:00:01", -61),)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"macAddress":"x"}]', "hello", "[" * 100_000,
                                  '[{"macAddress":"x","signalStrength":"-61"}]',
                                  '[{"macAddress":"x","signalStrength":-61,"age":1e300}]',
                                  '[{"macAddress":"x","signalStrength":-61,"channel":"6"}]',
                                  '[{"macAddress":"x","signalStrength":1,"ssid":' + "[" * 100_000,
                                  "[" + " " * (4 * 1024 * 1024) + "]",
                                  ], ids=count())  # fmt: skip
async def test_a_file_without_a_scan_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scan.json"
    path.write_text(text)
    with pytest.raises(WifiUnavailable, match=r"scan\.json"):
        await WifiFile(path).scan(1.0)
