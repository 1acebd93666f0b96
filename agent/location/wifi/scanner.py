"""A source of Wi-Fi scans, and the scan that it returns."""

from dataclasses import dataclass
from typing import Protocol

from agent.errors import AgentError
from agent.location.access_points import AccessPoint

ANOTHER_SOURCE = (
    "`cellagent config set kit.companion_port PORT` takes a companion, "
    "`cellagent config set location.wifi file:PATH` a file"
)
"""The hint where this host has no Wi-Fi to scan with."""


class WifiUnavailable(AgentError):
    """This source cannot scan here: no radio, no permission, no answer. The message says why."""

    kind = "wifi-unavailable"


@dataclass(frozen=True, slots=True)
class WifiScan:
    """The access points of one scan, the name of its source, and notes for a person."""

    source: str
    points: tuple[AccessPoint, ...]
    notes: tuple[str, ...] = ()


class WifiSource(Protocol):
    """A source of scans."""

    async def scan(self, deadline_s: float) -> WifiScan:
        """Scan within a deadline in seconds. Raises WifiUnavailable."""
