"""Networks of CoreWLAN are access points, unless macOS hides their addresses."""

from __future__ import annotations

import pytest

from agent.location.wifi.macos import access_points_of
from agent.location.wifi.scanner import WifiUnavailable


class HiddenNetwork:
    """A CWNetwork as macOS gives it without the location permission."""

    def bssid(self) -> None:
        return None


def test_hidden_addresses_on_macos_are_told_as_the_reason() -> None:
    assert access_points_of([]) == ()
    with pytest.raises(WifiUnavailable, match="hears 1 networks but hides their addresses"):
        access_points_of([HiddenNetwork()])
