"""Chooses the source of Wi-Fi scans that the profile names."""

import sys
from dataclasses import dataclass

from agent.config.profile import KitSettings
from agent.errors import UsageError
from agent.files.paths import named_path
from agent.location.module import ModuleWifi, is_module
from agent.location.wifi.companion import WifiCompanion
from agent.location.wifi.file import WifiFile
from agent.location.wifi.iw import Iw
from agent.location.wifi.macos import CoreWlan
from agent.location.wifi.networkmanager import NetworkManager
from agent.location.wifi.scanner import WifiScan, WifiSource, WifiUnavailable
from agent.location.wifi.windows import WindowsWlan
from at.driver.modem import Modem

WIFI_DEADLINE_S = 20.0
"""For one scan; CoreWLAN takes about 7 s of it."""

_VIRTUAL = "virtual:"


def wifi_source(
    word: str, kit: KitSettings | None = None, modem: Modem | None = None
) -> WifiSource | None:
    """Return the source that `location.wifi` names; None for "none". Raises UsageError.

    The profile checked the word. Only "auto" takes CoreWlan and WindowsWlan.

    A virtual kit hears the access points of its own town: its companion is virtual, too. `modem`
    is the kit's, where it is open: an nRF93M1 hears Wi-Fi itself.
    """
    if modem is not None and is_module(modem) and word in {"auto", "module"}:
        return ModuleWifi(modem)
    if word == "module":
        raise UsageError(
            "Wi-Fi is to come from the module, and the kit is no nRF93M1",
            hint="`cellagent config set location.wifi auto`",
        )
    companion_port = kit.companion_port if kit else ""
    if kit and kit.port.startswith(_VIRTUAL):
        companion_port = companion_port or _VIRTUAL
    if word.startswith("file:"):
        return WifiFile(named_path(word.removeprefix("file:")))
    if word == "companion" and not companion_port:
        raise UsageError(
            "Wi-Fi is to come from a companion, and its port is not set",
            hint="`cellagent config set kit.companion_port PORT` names it; "
            "`cellagent config set location.wifi auto` takes this host's own Wi-Fi",
        )
    if word == "companion" or (word == "auto" and companion_port):
        return WifiCompanion(companion_port)
    if word == "auto":
        return _of_this_host()
    if word == "networkmanager":
        return NetworkManager()
    return Iw() if word == "iw" else None


def _of_this_host() -> WifiSource:
    if sys.platform == "darwin":
        return CoreWlan()
    if sys.platform == "win32":
        return WindowsWlan()
    return FirstAvailable((NetworkManager(), Iw()))


@dataclass(frozen=True, slots=True)
class FirstAvailable:
    """Sources in order; the next is tried where one cannot scan at all."""

    sources: tuple[WifiSource, ...]

    async def scan(self, deadline_s: float) -> WifiScan:
        """Return the first scan that succeeds. Raises WifiUnavailable with every reason."""
        reasons: list[str] = []
        hint = ""
        for source in self.sources:
            try:
                return await source.scan(deadline_s)
            except WifiUnavailable as error:
                reasons.append(str(error).rstrip("."))
                hint = error.hint or hint  # of the last: what helps where all before it failed
        raise WifiUnavailable("; ".join(reasons), hint=hint)
