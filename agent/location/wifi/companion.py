"""Wi-Fi from an ESP-AT companion on a second port: the kit itself has no Wi-Fi."""

from dataclasses import dataclass
from weakref import WeakValueDictionary

from agent.location.access_points import AccessPoint
from agent.location.wifi.scanner import WifiScan, WifiUnavailable, scan_by
from at.commands.wifi import ScanAccessPoints, SetWifiMode
from at.driver.modem import open_modem
from at.driver.turns import Turns
from at.ports.usb import device_of
from at.protocol.errors import AtError
from at.transport.base import labelled

_STATION = 1
_TURNS: WeakValueDictionary[str, Turns] = WeakValueDictionary()
"""By the device of a companion's port, as long as somebody scans by it."""


@dataclass(frozen=True, slots=True)
class WifiCompanion:
    """The companion's port, as `at.driver.modem.open_modem` takes one."""

    port: str

    async def scan(self, deadline_s: float) -> WifiScan:
        """Set the companion to station mode and scan, in turn with other kits that have it."""
        turns = _TURNS.setdefault(device_of(self.port), Turns())
        try:
            # ESP-AT takes CR LF and nothing else: no need to probe for the line end.
            async with turns, open_modem(self.port, dialect="at-host", terminator="crlf") as modem:
                await modem.send(SetWifiMode(_STATION))
                networks, notes = await scan_by(modem, ScanAccessPoints(), deadline_s)
        except AtError as error:
            said = str(error).removeprefix(labelled(self.port)).strip()
            raise WifiUnavailable(
                f"the Wi-Fi companion on {labelled(self.port)} {said}",
                hint=error.hint
                or "an ESP-AT answers there: `cellagent config set kit.companion_port PORT` names "
                "another port",
            ) from error
        points = tuple(
            AccessPoint(
                bssid=network.mac,
                rssi_dbm=network.rssi,
                ssid=(network.ssid or "").encode(),
                channel=network.channel,
            )
            for network in networks
        )
        return WifiScan("companion", points, notes)
