"""Wi-Fi on macOS through CoreWLAN (the `macos` extra)."""

import asyncio
import importlib
from dataclasses import dataclass
from typing import Any

from agent.extras import require
from agent.location.access_points import AccessPoint
from agent.location.wifi.scanner import WifiScan, WifiUnavailable


@dataclass(frozen=True, slots=True)
class CoreWlan:
    """The default Wi-Fi interface of the Mac."""

    async def scan(self, deadline_s: float) -> WifiScan:
        """Scan, in about 7 s. Since macOS 14 the addresses need the location permission."""
        try:
            async with asyncio.timeout(deadline_s):
                networks = await asyncio.to_thread(_networks)
        except TimeoutError as error:
            raise WifiUnavailable(f"CoreWLAN gave no scan within {deadline_s:g} s") from error
        return WifiScan("macos", access_points_of(networks))


def access_points_of(networks: list[Any]) -> tuple[AccessPoint, ...]:
    """Return CWNetwork objects as access points. Raises WifiUnavailable if they are hidden."""
    points = tuple(
        AccessPoint(
            bssid=str(network.bssid()),
            rssi_dbm=int(network.rssiValue()),
            ssid=bytes(network.ssidData() or b""),
            channel=int(network.wlanChannel().channelNumber()) if network.wlanChannel() else None,
        )
        for network in networks
        if network.bssid()
    )
    if networks and not points:
        raise WifiUnavailable(
            f"macOS hears {len(networks)} networks but hides their addresses from this program",
            hint="System Settings > Privacy & Security > Location Services: allow the terminal",
        )
    return points


def _networks() -> list[Any]:
    require("a Wi-Fi scan on macOS", "CoreWLAN")
    core_wlan = importlib.import_module("CoreWLAN")
    interface = core_wlan.CWWiFiClient.sharedWiFiClient().interface()
    if interface is None:
        raise WifiUnavailable("this Mac has no Wi-Fi interface that is switched on")
    networks, refusal = interface.scanForNetworksWithName_error_(None, None)
    if refusal is not None:
        raise WifiUnavailable(f"CoreWLAN refused a scan: {refusal.localizedDescription()}")
    return list(networks)
