"""Rate limits per device, off by default: the service has them and publishes few figures.

The `rate-limit` fault switches them on.
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.standin.faults import rate_limit
from agent.standin.observability.project import Project
from agent.standin.observability.refusals import too_many_requests
from agent.standin.observability.tables import DEVICES
from agent.standin.state import Cloud

HOUR_S = 3600.0
SUGGESTED = {
    "chunks": (600, HOUR_S),
    "events": (600, HOUR_S),
    "releases": (60, HOUR_S),
    "coredumps": (50, 24 * HOUR_S),
}
"""Suggested limits per device: requests in a window of seconds, by kind."""


@dataclass(slots=True)
class RateLimits:
    """Allowed requests by kind, and the times of recent requests by device."""

    allowed: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    _seen: dict[tuple[str, ...], deque[float]] = field(default_factory=dict)

    def count(self, project: Project, kind: str, *serials: str) -> None:
        """Count one request of these devices.

        Raises 429 with Retry-After, and counts it for none of them, if it is beyond the limit of
        one.
        """
        if kind not in self.allowed:
            return
        most, window_s = self.allowed[kind]
        now = project.now
        counted = []
        for serial in serials:
            device = project.table(DEVICES).get(serial)
            if device and device.server_side_developer_mode:
                continue
            key = (project.organization, project.slug, kind, serial)
            seen = self._seen.setdefault(key, deque())
            while seen and seen[0] <= now - window_s:
                seen.popleft()
            if len(seen) >= most:
                wait_s = max(1, math.ceil(seen[0] + window_s - now)) if seen else int(window_s)
                raise too_many_requests(
                    f"more than {most} {kind} of this device in {window_s:g} s", wait_s
                )
            counted.append(seen)
        for seen in counted:
            seen.append(now)


def limits(cloud: Cloud) -> RateLimits:
    """Return the limits of this stand-in, set by its active faults."""
    rate_limits = cloud.transient(RateLimits, RateLimits)
    rate_limits.allowed = _allowed(rate_limit(cloud))
    return rate_limits


def _allowed(argument: str | None) -> Mapping[str, tuple[int, float]]:
    if not argument:
        return {} if argument is None else SUGGESTED
    return dict.fromkeys(SUGGESTED, (int(argument), HOUR_S))
