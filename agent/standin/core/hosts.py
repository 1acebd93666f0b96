"""The hosts of both services, and how each writes an error that no route raised."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.standin.core.errors import Refused


class Host(StrEnum):
    """The hosts of both services, by their key in `urls` of the ready line."""

    DEVICE_CLOUD = "device_cloud"
    API = "api"
    CHUNKS = "chunks"
    INGRESS = "ingress"
    FILES = "files"
    PROVISIONING = "provisioning"
    DOWNLOADS = "downloads"


# Third-party tools know one base for these, so they answer at the API's address, too.
ALSO_AT_API = (Host.CHUNKS, Host.FILES)


def refusal(path: str, status: int, message: str) -> Refused:
    """Write an error that no route raised in the manner of the half that owns the path."""
    if path.startswith(("/api/", "/auth/")):
        from agent.standin.observability.refusals import refusal as observability

        return observability(status, message)
    from agent.standin.device_cloud.refusals import DeviceCloudRefused

    return DeviceCloudRefused(status, message)
