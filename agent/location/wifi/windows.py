"""Wi-Fi on Windows through wlanapi.dll: its own tools print in the system's language."""

import asyncio
import ctypes
from dataclasses import dataclass

from agent.location.access_points import AccessPoint, channel_of
from agent.location.wifi.scanner import WifiScan, WifiUnavailable

_ACCESS_DENIED = 5


class _Guid(ctypes.Structure):
    _fields_ = (("data", ctypes.c_ubyte * 16),)


class _InterfaceInfo(ctypes.Structure):
    _fields_ = (("guid", _Guid), ("description", ctypes.c_wchar * 256), ("state", ctypes.c_uint32))


class _Ssid(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("octets", ctypes.c_ubyte * 32))


class _BssEntry(ctypes.Structure):
    """WLAN_BSS_ENTRY; frequencies are in kHz, RSSI in dBm."""

    _fields_ = (
        ("ssid", _Ssid),
        ("phy_id", ctypes.c_uint32),
        ("bssid", ctypes.c_ubyte * 6),
        ("bss_type", ctypes.c_uint32),
        ("phy_type", ctypes.c_uint32),
        ("rssi_dbm", ctypes.c_int32),
        ("link_quality", ctypes.c_uint32),
        ("in_regulatory_domain", ctypes.c_ubyte),
        ("beacon_period", ctypes.c_uint16),
        ("timestamp", ctypes.c_uint64),
        ("host_timestamp", ctypes.c_uint64),
        ("capability", ctypes.c_uint16),
        ("frequency_khz", ctypes.c_uint32),
        ("rate_count", ctypes.c_uint32),
        ("rates", ctypes.c_uint16 * 126),
        ("ie_offset", ctypes.c_uint32),
        ("ie_size", ctypes.c_uint32),
    )


class _List(ctypes.Structure):
    """The head that the lists of wlanapi share: two counts, then the items."""

    _fields_ = (("first", ctypes.c_uint32), ("second", ctypes.c_uint32))


@dataclass(frozen=True, slots=True)
class WindowsWlan:
    """The native Wi-Fi API of Windows."""

    async def scan(self, deadline_s: float) -> WifiScan:
        """List the system's access points; since Windows 11 24H2 with the location permission."""
        try:
            async with asyncio.timeout(deadline_s):
                points = await asyncio.to_thread(_list_access_points)
        except TimeoutError as error:
            raise WifiUnavailable(f"Windows gave no list within {deadline_s:g} s") from error
        return WifiScan("windows", tuple(points))


def access_point_of(entry: _BssEntry) -> AccessPoint:
    """Return one entry of the system's list as an access point."""
    frequency_mhz = entry.frequency_khz // 1000
    return AccessPoint(
        bssid=":".join(f"{octet:02x}" for octet in entry.bssid),
        rssi_dbm=entry.rssi_dbm,
        ssid=bytes(entry.ssid.octets[: entry.ssid.length]),
        channel=channel_of(frequency_mhz),
        frequency_mhz=frequency_mhz or None,
    )


def _list_access_points() -> list[AccessPoint]:
    loader = getattr(ctypes, "WinDLL", None)
    if loader is None:
        raise WifiUnavailable("this is not Windows")
    wlan = loader("wlanapi.dll")
    version, handle = ctypes.c_uint32(), ctypes.c_void_p()
    _check(wlan.WlanOpenHandle(2, None, ctypes.byref(version), ctypes.byref(handle)))
    try:
        interfaces = ctypes.POINTER(_List)()
        _check(wlan.WlanEnumInterfaces(handle, None, ctypes.byref(interfaces)))
        try:
            head = ctypes.addressof(interfaces.contents) + ctypes.sizeof(_List)
            found = (_InterfaceInfo * interfaces.contents.first).from_address(head)
            return [point for info in found for point in _access_points_of(wlan, handle, info.guid)]
        finally:
            wlan.WlanFreeMemory(interfaces)
    finally:
        wlan.WlanCloseHandle(handle, None)


def _access_points_of(wlan: ctypes.CDLL, handle: ctypes.c_void_p, guid: _Guid) -> list[AccessPoint]:
    entries, any_type = ctypes.POINTER(_List)(), 3
    _check(
        wlan.WlanGetNetworkBssList(
            handle, ctypes.byref(guid), None, any_type, False, None, ctypes.byref(entries)
        )
    )
    try:
        head = ctypes.addressof(entries.contents) + ctypes.sizeof(_List)
        found = (_BssEntry * entries.contents.second).from_address(head)
        return [access_point_of(entry) for entry in found]
    finally:
        wlan.WlanFreeMemory(entries)


def _check(code: int) -> None:
    if code == _ACCESS_DENIED:
        raise WifiUnavailable(
            "Windows hides the access points: this program has no location permission",
            hint="Settings > Privacy & security > Location: let desktop apps use it",
        )
    if code:
        raise WifiUnavailable(f"the Wi-Fi service of Windows answered with error {code}")
