"""What every source of a Wi-Fi scan gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.errors import AgentError
from agent.location.access_points import AccessPoint


class WifiUnavailable(AgentError):
    """This source hears nothing here: no radio, no permission, no answer. The message says why."""

    kind = "wifi-unavailable"


@dataclass(frozen=True, slots=True)
class WifiScan:
    """What was heard, by which source, and what a person should know about it."""

    source: str
    points: tuple[AccessPoint, ...]
    notes: tuple[str, ...] = ()


class WifiSource(Protocol):
    """A source of scans."""

    async def scan(self, deadline_s: float) -> WifiScan:
        """Scan within a deadline in seconds. Raises WifiUnavailable."""
