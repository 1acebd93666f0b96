"""From a profile to a locator: which sources hear, and which form of the path is used."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent.location.calls import ProjectSlugs
from agent.location.cell_scan import require_firmware, scan_cells
from agent.location.locator import LocationOptions, Locator
from agent.location.wifi.choice import wifi_source

if TYPE_CHECKING:
    from agent.config.profile import KitSettings, Profile
    from agent.http import HttpClient
    from at.driver.modem import Modem

WIFI_DEADLINE_S = 20.0


def project_of(profile: Profile) -> ProjectSlugs | None:
    """Return the slugs of the path's current form; None where the profile wants the legacy one."""
    if profile.location.legacy:
        return None
    return ProjectSlugs(profile.account.organization, profile.account.project)


def locator_for(
    profile: Profile,
    kit: KitSettings,
    client: HttpClient,
    modem: Modem | None,
    switches: LocationOptions | None = None,
) -> Locator:
    """Return the locator of a kit; without a modem it hears Wi-Fi alone. Raises UsageError."""
    wifi = wifi_source(profile.location.wifi, kit.companion_port)
    return Locator(
        client,
        project_of(profile),
        partial(wifi.scan, WIFI_DEADLINE_S) if wifi is not None else None,
        partial(scan_cells, modem) if modem is not None else None,
        profile.location.good_enough_m,
        switches or LocationOptions(send_ssid=profile.location.send_ssid),
        kit.device_id,
        partial(require_firmware, modem) if modem is not None else None,
    )
