"""An entry of the list that Windows gives is read."""

from __future__ import annotations

from agent.location.access_points import AccessPoint
from agent.location.wifi.windows import _BssEntry, access_point_of


def test_an_entry_of_the_windows_list_is_read() -> None:
    entry = _BssEntry(rssi_dbm=-61, frequency_khz=2437000)
    entry.bssid[:] = bytes.fromhex("40017a000001")
    entry.ssid.length = 4
    entry.ssid.octets[:4] = b"home"
    assert access_point_of(entry) == AccessPoint("40:01:7a:00:00:01", -61, b"home", 6, 2437)
    entry.frequency_khz = 0
    assert access_point_of(entry).frequency_mhz is None
