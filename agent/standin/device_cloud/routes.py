"""The routes of the device cloud half, by host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.device_cloud import (
    account,
    association,
    ble,
    bulk,
    bundles,
    claiming,
    device_changes,
    devices,
    downloads,
    executions,
    fota_jobs,
    jitp,
    location,
    messages,
    onboarding,
    project_devices,
    provisioning,
)
from agent.standin.hosts import Host

if TYPE_CHECKING:
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> dict[Host, list[Route]]:
    """Return the routes of this half, and have what was accepted earlier take effect in time."""
    cloud.settling.append(lambda: bulk.settle(cloud))
    return {
        Host.DEVICE_CLOUD: [
            *account.routes(cloud),
            *onboarding.routes(cloud),
            *association.routes(cloud),
            *jitp.routes(cloud),
            *project_devices.routes(cloud),
            *bulk.routes(cloud),
            *devices.routes(cloud),
            *device_changes.routes(cloud),
            *messages.routes(cloud),
            *ble.routes(cloud),
            *bundles.routes(cloud),
            *fota_jobs.routes(cloud),
            *executions.routes(cloud),
            *location.routes(cloud),
        ],
        Host.PROVISIONING: [*claiming.routes(cloud), *provisioning.routes(cloud)],
        Host.DOWNLOADS: downloads.routes(cloud),
    }
