"""The output of `iw` is read; what it cannot do is told."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from agent.location.access_points import AccessPoint
from agent.location.wifi.iw import Iw, parse_iw, unescape_ssid
from agent.location.wifi.scanner import WifiUnavailable

# Written by hand in the form that `iw dev IF scan` prints.
IW = """\
BSS 40:01:7a:00:00:01(on wlan0) -- associated
\tlast seen: 120 ms ago
\tfreq: 2437
\tsignal: -61.00 dBm
\tSSID: caf\\xc3\\xa9 5
BSS 40:01:7a:00:00:02(on wlan0)
\tfreq: 5180.0
\tsignal: -70.00 dBm
\tSSID:
BSS 40:01:7a:00:00:03(on wlan0)
\tfreq: 5180
\tSSID: no signal line
"""


def test_the_output_of_iw_is_read() -> None:
    assert parse_iw(IW) == [
        AccessPoint("40:01:7a:00:00:01", -61, "café 5".encode(), 6, 2437, 0.12),
        AccessPoint("40:01:7a:00:00:02", -70, b"", 36, 5180, None),
    ]


def test_an_ssid_of_any_bytes_is_restored() -> None:
    assert unescape_ssid("a\\x00\\xffb") == b"a\x00\xffb"


def fake_iw(tmp_path: Path, script: str) -> Iw:
    program = tmp_path / "iw"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Iw(str(program))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("command failed: Operation not permitted (-1)", "needs root;"),
        ("command failed: Network is down (-100)", "failed: command failed: Network is down"),
        ("", "failed: exit 255;"),
    ],
)
async def test_where_a_fresh_scan_fails_the_last_one_is_taken_and_the_reason_is_told(
    error: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "scan.txt").write_text(IW)
    iw = fake_iw(
        tmp_path,
        f'case "$*" in dev) echo "\tInterface wlan0";; *dump) cat {tmp_path}/scan.txt;;'
        f' *) printf "{error}" >&2; exit 255;; esac',
    )
    scan = await iw.scan(5.0)
    assert len(scan.points) == 2
    assert f"a fresh scan {told}" in scan.notes[0]


async def test_a_host_without_an_interface_says_so(tmp_path: Path) -> None:
    with pytest.raises(WifiUnavailable, match="no Wi-Fi interface"):
        await fake_iw(tmp_path, "exit 0").scan(5.0)


async def test_a_host_without_iw_says_so(tmp_path: Path) -> None:
    with pytest.raises(WifiUnavailable, match="cannot be started"):
        await Iw(str(tmp_path / "nothing")).scan(5.0)


async def test_an_iw_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(WifiUnavailable, match=r"did not end within 0\.05 s"):
        await fake_iw(tmp_path, "exec sleep 60").scan(0.05)


async def test_an_interface_that_tells_not_even_the_last_scan_is_named(tmp_path: Path) -> None:
    iw = fake_iw(
        tmp_path,
        'case "$*" in dev) echo "\tInterface wlan0";;'
        ' *) echo "command failed: No such device (-19)" >&2; exit 237;; esac',
    )
    with pytest.raises(WifiUnavailable, match=r"cannot scan on wlan0: .*No such device"):
        await iw.scan(5.0)
