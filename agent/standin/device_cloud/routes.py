"""The routes of the device cloud, by host, and its document."""

from dataclasses import replace
from functools import lru_cache

from starlette.responses import Response

from agent.standin.core import openapi
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.operation import Host, Operation
from agent.standin.core.responses import JSON
from agent.standin.core.schema import NUMBER, OBJECT, TEXT, object_schema
from agent.standin.device_cloud import access, account, bundles, executions, fota_jobs
from agent.standin.device_cloud.devices import (
    ble,
    bulk,
    claiming,
    devices,
    kit_commands,
    messages,
    onboarding,
)
from agent.standin.device_cloud.location import location, orbits
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.state import Cloud

_SCHEMES = {
    access.SIMPLE_TOKEN: "the API key of a user in a team.",
    access.JSON_WEB_TOKEN: "a JWT of a device, or of a proxy server with a service key. ES256"
    " only.",
    access.EVALUATION_TOKEN: "a JWT for location, for 30 days; deprecated.",
    access.ORGANIZATION_TOKEN: "a credential for the projects of one organization.",
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
_ERROR = object_schema(code=NUMBER, message=TEXT)


async def _published_document(context: Context) -> Response:
    urls, today = context.cloud.urls, orbits.gps_day_began(context.cloud.clock.time())
    return JSON(document(urls["device_cloud"], today, urls["provisioning"]))


OPERATIONS = {
    Host.DEVICE_CLOUD: (
        declare(
            "GET /v1/openapi.json", "Schema", "This document.", _published_document,
            tag="Account", access=access.OPEN, answers={200: OBJECT},
        ),
        *account.OPERATIONS,
        *devices.OPERATIONS,
        *ble.OPERATIONS,
        *messages.OPERATIONS,
        *onboarding.OPERATIONS,
        *bulk.OPERATIONS,
        *bundles.OPERATIONS,
        *fota_jobs.OPERATIONS,
        *executions.OPERATIONS,
        *location.OPERATIONS,
    ),
    Host.PROVISIONING: (*claiming.OPERATIONS, *kit_commands.OPERATIONS),
    Host.DOWNLOADS: bundles.DOWNLOADS,
}  # fmt: skip
"""What each host serves: the one declaration of every operation of this half."""


def routes(cloud: Cloud) -> dict[Host, list[Endpoint]]:
    """Return the routes of this half; bulk requests that are due take effect before a request."""
    cloud.before_request.append(lambda: bulk.process_due(cloud))
    return {
        host: [served.endpoint(cloud) for served in operations]
        for host, operations in OPERATIONS.items()
    }


@lru_cache(maxsize=8)
def document(base_url: str, now_s: float, provisioning_url: str = "") -> dict[str, object]:
    """Return the document of this half, as it is true at a Unix time."""
    elsewhere = provisioning_url not in {"", base_url}
    return openapi.document(
        every_operation(now_s),
        title="Device cloud",
        description="The device cloud, as this stand-in answers for it.",
        server=base_url,
        components={
            "securitySchemes": {
                access.component(name): {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"{name}: {text}",
                }
                for name, text in _SCHEMES.items()
            },
            "schemas": {"Error": _ERROR},
            "parameters": {"If-Match": _IF_MATCH},
        },
        elsewhere={
            served.operation.name: provisioning_url for served in claiming.OPERATIONS if elsewhere
        },
    )


def every_operation(now_s: float) -> list[Operation]:
    """Return all operations of this half that are documented, as they are at a Unix time."""
    served = (*OPERATIONS[Host.DEVICE_CLOUD], *claiming.OPERATIONS)
    return [
        replace(one, parameters=tuple(part.at(now_s) for part in one.parameters))
        for one in (one.operation for one in served)
    ]
