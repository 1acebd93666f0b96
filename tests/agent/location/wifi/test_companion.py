"""Wi-Fi from an ESP-AT on a real terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.location.access_points import AccessPoint, select_usable
from agent.location.wifi.companion import WifiCompanion
from agent.location.wifi.scanner import WifiUnavailable
from tests.support.location.moving_kit import moving_kit
from tests.support.modem.pty_far_end import PtyFarEnd


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


async def test_kits_that_share_a_companion_hear_by_it_one_after_the_other(tmp_path: Path) -> None:
    far = PtyFarEnd(esp_at(b'+CWLAP:(3,"a",-60,"40:01:7a:00:00:01",1)\r\n'), terminator=b"\n")
    link = tmp_path / "usb-Espressif-if00"  # as in /dev/serial/by-id
    link.symlink_to(far.path)
    names = far.path, far.path, str(link)
    try:
        scans = await asyncio.gather(*(WifiCompanion(name).scan(10.0) for name in names))
    finally:
        far.unplug()
    assert [point.ssid for scan in scans for point in scan.points] == [b"a"] * 3


async def test_a_line_that_cannot_be_read_costs_no_other_access_point() -> None:
    lines = (
        b'+CWLAP:(3,"a",-60,"40:01:7a:00:00:01",1)\r\n'
        b'+CWLAP:(3,"b",-6[00:00:01.250] modem: hello\r\n'
        b'+CWLAP:(3,"c",-80,"40:01:7a:00:00:03",6)\r\n'
    )
    far = PtyFarEnd(esp_at(lines), terminator=b"\n")
    try:
        scan = await WifiCompanion(far.path).scan(10.0)
    finally:
        far.unplug()
    assert [point.ssid for point in scan.points] == [b"a", b"c"]
    (note,) = scan.notes
    assert note.startswith("Wi-Fi: 1 line of the scan cannot be read: ")


async def test_a_companion_whose_every_line_cannot_be_read_has_heard_nothing() -> None:
    far = PtyFarEnd(esp_at(b"+CWLAP:(3\r\n"), terminator=b"\n")
    try:
        with pytest.raises(WifiUnavailable, match="not one access point"):
            await WifiCompanion(far.path).scan(10.0)
    finally:
        far.unplug()


async def test_a_companion_that_falls_silent_is_named_once() -> None:
    answer = esp_at(b"")
    far = PtyFarEnd(
        lambda line: b"" if line.strip() == b"AT+CWLAP" else answer(line),  # type: ignore[operator]
        terminator=b"\n",
    )
    try:
        with pytest.raises(WifiUnavailable) as told:
            await WifiCompanion(far.path).scan(0.1)
    finally:
        far.unplug()
    assert str(told.value) == (
        f"the Wi-Fi companion on {far.path}: no answer to +CWLAP within 0.1 s"
    )


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
