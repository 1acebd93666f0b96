"""The routes of the device cloud half, by host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.core.operation import Host
from agent.standin.device_cloud import account, bundles, executions, fota_jobs, location
from agent.standin.device_cloud.devices import association, ble, bulk, devices, messages
from agent.standin.device_cloud.onboarding import claiming, onboarding

if TYPE_CHECKING:
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> dict[Host, list[Route]]:
    """Return the routes of this half, and have what was accepted earlier take effect in time."""
    cloud.before_request.append(lambda: bulk.settle(cloud))
    return {
        Host.DEVICE_CLOUD: [
            *account.routes(cloud),
            *onboarding.routes(cloud),
            *association.routes(cloud),
            *onboarding.jitp_routes(cloud),
            *devices.project_routes(cloud),
            *bulk.routes(cloud),
            *devices.routes(cloud),
            *devices.change_routes(cloud),
            *messages.routes(cloud),
            *ble.routes(cloud),
            *bundles.routes(cloud),
            *fota_jobs.routes(cloud),
            *executions.routes(cloud),
            *location.routes(cloud),
        ],
        Host.PROVISIONING: [*claiming.routes(cloud), *claiming.provisioning_routes(cloud)],
        Host.DOWNLOADS: bundles.download_routes(cloud),
    }
