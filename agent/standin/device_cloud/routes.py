"""The routes of the device cloud half, by host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.app import Host
from agent.standin.device_cloud import account, ble, device_changes, devices, messages

if TYPE_CHECKING:
    from starlette.routing import Route

    from agent.standin.state import Cloud


def routes(cloud: Cloud) -> dict[Host, list[Route]]:
    """Return the routes of this half."""
    return {
        Host.DEVICE_CLOUD: [
            *account.routes(cloud),
            *devices.routes(cloud),
            *device_changes.routes(cloud),
            *messages.routes(cloud),
            *ble.routes(cloud),
        ]
    }
