"""The newest release for a device, as a device asks for it (clause O5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.call import Call, Host, Request, Scheme
from agent.observability.resources import Resource
from agent.observability.slugs import slug, version_name

if TYPE_CHECKING:
    from agent.call import Response


@dataclass(frozen=True, slots=True)
class FetchLatestRelease(Call[Resource | None]):
    """With the project key, by the short URL; None where nothing is newer."""

    host = Host.API
    schemes = (Scheme.PROJECT_KEY,)

    device_serial: str
    hardware_version: str
    software_type: str
    current_version: str = ""

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        query = [
            ("device_serial", slug(self.device_serial, "device serial")),
            ("hardware_version", version_name(self.hardware_version, "hardware version")),
            ("software_type", self.software_type),
        ]
        if self.current_version:
            query.append(("current_version", self.current_version))
        return Request("GET", "/api/v0/releases/latest", query)

    def parse(self, response: Response) -> Resource | None:
        """Return the release. Raises BadAnswer."""
        if response.status == 204:
            return None
        return Resource(response.decode(dict))
