"""Wi-Fi through a real D-Bus, with NetworkManager's mock behind it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.location.wifi.choice import FirstAvailable
from agent.location.wifi.file import WifiFile
from agent.location.wifi.networkmanager import NetworkManager
from agent.location.wifi.scanner import WifiUnavailable
from tests.support.location.network_manager import (
    MOCK,
    REFUSALS_OF_A_BUS,
    MockedNetworkManager,
    bus_that_says,
    mocked_network_manager,
)


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockedNetworkManager]:
    with mocked_network_manager(tmp_path) as mocked:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", mocked.address)
        yield mocked


@pytest.mark.contract("D8.1", "C5")
async def test_a_fresh_scan_is_asked_for_and_its_points_are_listed(
    bus: MockedNetworkManager,
) -> None:
    device = bus.add_wifi_device()
    bus.add_access_point(device, "ap0", "kitchen", "40:01:7A:00:00:01", 80)
    bus.add_access_point(device, "ap1", "attic", "40:01:7A:00:00:02", 20)
    scan = await NetworkManager().scan(5.0)
    assert {(point.bssid, point.rssi_dbm, point.channel) for point in scan.points} == {
        ("40:01:7A:00:00:01", -52, 6),
        ("40:01:7A:00:00:02", -88, 6),
    }
    assert {point.ssid for point in scan.points} == {b"kitchen", b"attic"}
    assert scan.notes == ()


@pytest.mark.contract("D8.1", "C5")
async def test_the_end_of_a_scan_that_takes_its_time_is_waited_for(
    bus: MockedNetworkManager,
) -> None:
    device = bus.add_wifi_device()
    bus.scan_takes(device, ms=100)
    assert (await NetworkManager().scan(10.0)).notes == ()


@pytest.mark.contract("D8.1", "C5")
async def test_what_an_access_point_does_not_tell_is_not_made_up(bus: MockedNetworkManager) -> None:
    device = bus.add_wifi_device()
    bus.add_access_point(device, "ap0", "kitchen", "40:01:7A:00:00:01", 80)
    bus.scan_loses(device, "ap0", "Frequency", "LastSeen")
    [point] = (await NetworkManager().scan(5.0)).points
    assert (point.frequency_mhz, point.channel, point.age_s) == (None, None, None)


async def test_a_scan_that_is_refused_serves_the_list_with_its_age(
    bus: MockedNetworkManager,
) -> None:
    device = bus.add_wifi_device()
    bus.add_access_point(device, "ap0", "kitchen", "40:01:7A:00:00:01", 80)
    bus.scan_does(
        device,
        "raise dbus.exceptions.DBusException('too soon',"
        " name='org.freedesktop.NetworkManager.Device.NotAllowed')",
    )
    scan = await NetworkManager().scan(5.0)
    assert len(scan.points) == 1
    assert "scans that come too often" in scan.notes[0]


async def test_a_scan_that_never_ends_serves_the_list(bus: MockedNetworkManager) -> None:
    device = bus.add_wifi_device()
    bus.scan_does(device, "pass")
    scan = await NetworkManager().scan(0.05)
    assert "no fresh scan within 0.05 s" in scan.notes[0]


async def test_a_host_without_wifi_says_so(bus: MockedNetworkManager) -> None:
    with pytest.raises(WifiUnavailable, match="no Wi-Fi device"):
        await NetworkManager().scan(1.0)


async def test_a_host_without_a_bus_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/nothing")
    with pytest.raises(WifiUnavailable, match="no D-Bus system bus"):
        await NetworkManager().scan(1.0)


@pytest.mark.parametrize("why", REFUSALS_OF_A_BUS)
async def test_a_bus_that_serves_nobody_is_a_source_less(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that has the socket of the host, where its users are others."""
    with bus_that_says(tmp_path, REFUSALS_OF_A_BUS[why]) as address:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        with pytest.raises(WifiUnavailable, match="no D-Bus system bus that answers") as caught:
            await NetworkManager().scan(1.0)
    assert "location.wifi iw` asks without it" in caught.value.hint


async def test_an_address_of_the_bus_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "nonsense")
    with pytest.raises(WifiUnavailable, match="address did not contain a transport"):
        await NetworkManager().scan(1.0)


async def test_a_bus_that_says_nothing_is_given_up_after_the_time_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bus_that_says(tmp_path, {}) as address:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        with pytest.raises(WifiUnavailable, match=r"no answer in 0\.01 s") as caught:
            await NetworkManager().scan(0.01 - 5)  # five seconds more are those of its list
    assert "location.wifi iw` asks without it" in caught.value.hint


async def test_an_access_point_that_vanishes_while_it_is_read_is_left_out(
    bus: MockedNetworkManager,
) -> None:
    device = bus.add_wifi_device()
    bus.add_access_point(device, "ap0", "kitchen", "40:01:7A:00:00:01", 80)
    bus.add_access_point(device, "ap1", "attic", "40:01:7A:00:00:02", 20)
    gone = "/org/freedesktop/NetworkManager/AccessPoint/ap0"
    bus.call("/org/freedesktop/NetworkManager", f"{MOCK}.RemoveObject", gone)
    scan = await NetworkManager().scan(5.0)
    assert [point.bssid for point in scan.points] == ["40:01:7A:00:00:02"]


async def test_without_dbus_fast_the_error_names_what_is_missing_and_the_next_source_is_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "dbus_fast", None)
    with pytest.raises(WifiUnavailable, match="dbus-fast") as caught:
        await NetworkManager().scan(5.0)
    assert "location.wifi" in caught.value.hint
    missing = WifiFile(tmp_path / "missing.json")
    with pytest.raises(WifiUnavailable, match=r"dbus-fast.*; .*missing\.json"):
        await FirstAvailable((NetworkManager(), missing)).scan(5.0)
