"""Rate limits per device, off by default: the service has them and publishes few figures.

The `rate-limit` fault switches them on.
"""

import math
from collections import defaultdict, deque

from agent.standin.faults import rate_limit
from agent.standin.observability.project import Project
from agent.standin.observability.refusals import too_many_requests
from agent.standin.observability.tables import DEVICES

HOUR_S = 3600.0
SUGGESTED = {
    "chunks": (600, HOUR_S),
    "events": (600, HOUR_S),
    "releases": (60, HOUR_S),
    "coredumps": (50, 24 * HOUR_S),
}
"""Suggested limits per device: requests in a window of seconds, by kind."""


class _Seen(defaultdict[tuple[str, str, str], deque[float]]):
    """The times of recent requests, by project, kind and device."""


def count_request(project: Project, kind: str, *serials: str) -> None:
    """Count one request of these devices, where a fault limits them.

    Raises 429 with Retry-After, and counts it for none of them, if it is beyond the limit of one.
    """
    limit = rate_limit(project.cloud)
    if limit is None:
        return
    most, window_s = (int(limit), HOUR_S) if limit else SUGGESTED[kind]
    times, now = project.cloud.transient(_Seen, lambda: _Seen(deque)), project.now
    counted = []
    for serial in serials:
        device = project.table(DEVICES).get(serial)
        if device and device.server_side_developer_mode:
            continue
        seen = times[project.path, kind, serial]
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
