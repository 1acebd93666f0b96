"""The routes of the device cloud, by host, and its document."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.core import openapi
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.operation import Host, Operation
from agent.standin.core.responses import JSON
from agent.standin.device_cloud import account, assistance, bundles, executions, fota_jobs, location
from agent.standin.device_cloud.declared import devices as declared_devices
from agent.standin.device_cloud.declared import onboarding as declared_onboarding
from agent.standin.device_cloud.declared.fota import fota
from agent.standin.device_cloud.declared.location import location as declared_location
from agent.standin.device_cloud.declared.shapes import (
    EVALUATION_TOKEN,
    JSON_WEB_TOKEN,
    ORGANIZATION_TOKEN,
    SIMPLE_TOKEN,
)
from agent.standin.device_cloud.devices import ble, bulk, claiming, devices, messages, onboarding
from agent.standin.state import Cloud

_SCHEMES = {
    SIMPLE_TOKEN: "The API key of a user in a team.",
    JSON_WEB_TOKEN: "A JWT of a device, or of a proxy server with a service key. ES256 only.",
    EVALUATION_TOKEN: "Deprecated: a JWT for location, for 30 days.",
    ORGANIZATION_TOKEN: "An organization auth token, for the projects of one organization.",
}
# A component, not a parameter of operations: no schema describes which value fits, so a tool that
# generates values from the document would only generate refusals.
_IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The version that a change is meant for: `$meta.version`, which is the `ETag`"
    " of a single read, or `*`. Every operation that changes an existing resource takes it.",
}
_ERROR = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
}


def routes(cloud: Cloud) -> dict[Host, list[Route]]:
    """Return the routes of this half; bulk requests that are due take effect before a request."""
    cloud.before_request.append(lambda: bulk.process_due(cloud))

    async def published_document(_request: Request) -> Response:
        gps_day = int(assistance.gps_seconds(cloud.clock.time()) // assistance.DAY_S)
        return JSON(document(cloud.urls["device_cloud"], gps_day, cloud.urls["provisioning"]))

    return {
        Host.DEVICE_CLOUD: [
            Endpoint("/v1/openapi.json", published_document, methods=["GET"], name="Schema"),
            *account.routes(cloud),
            *onboarding.routes(cloud),
            *onboarding.association_routes(cloud),
            *onboarding.certificate_routes(cloud),
            *onboarding.project_routes(cloud),
            *bulk.routes(cloud),
            *devices.routes(cloud),
            *devices.change_routes(cloud),
            *messages.routes(cloud),
            *ble.routes(cloud),
            *ble.gateway_routes(cloud),
            *bundles.routes(cloud),
            *fota_jobs.routes(cloud),
            *executions.routes(cloud),
            *location.routes(cloud),
        ],
        Host.PROVISIONING: [*claiming.routes(cloud), *claiming.provisioning_routes(cloud)],
        Host.DOWNLOADS: bundles.download_routes(cloud),
    }


@lru_cache(maxsize=8)
def document(base_url: str, gps_day: int, provisioning_url: str = "") -> dict[str, Any]:
    """Return the document of this half, as it is true on a GPS day."""
    return openapi.document(
        every_operation(gps_day),
        title="Device cloud",
        description="The device cloud, as this stand-in answers for it.",
        server=base_url,
        components={
            "securitySchemes": {
                name: {"type": "http", "scheme": "bearer", "description": text}
                for name, text in _SCHEMES.items()
            },
            "schemas": {"Error": _ERROR},
            "parameters": {"If-Match": _IF_MATCH},
        },
        elsewhere={
            operation.name: provisioning_url
            for operation in declared_onboarding.provisioning()
            if provisioning_url not in {"", base_url}
        },
    )


def every_operation(gps_day: int = 0) -> list[Operation]:
    """Return all operations of this half; what may be predicted follows from the GPS day."""
    return [
        *declared_devices.account(),
        *declared_devices.devices(),
        *declared_devices.ble(),
        *declared_devices.gateways(),
        *declared_devices.messages(),
        *declared_onboarding.onboarding(),
        *fota(),
        *declared_location(gps_day),
        *declared_onboarding.provisioning(),
    ]
