"""Every operation of the device cloud half; a test holds that they and the routes are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.standin.device_cloud.declared.account import account
from agent.standin.device_cloud.declared.devices import devices
from agent.standin.device_cloud.declared.fota import fota
from agent.standin.device_cloud.declared.links import linked
from agent.standin.device_cloud.declared.location import location
from agent.standin.device_cloud.declared.onboarding import onboarding, provisioning

if TYPE_CHECKING:
    from agent.standin.operation import Operation


def every_operation(gps_day: int = 0) -> list[Operation]:
    """Return all operations of this half; what may be predicted follows from the GPS day."""
    operations = [
        *account(),
        *devices(),
        *onboarding(),
        *fota(),
        *location(gps_day),
        *provisioning(),
    ]
    return list(linked(operations))
