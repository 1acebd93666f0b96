"""GET /v1/openapi.json: the OpenAPI document of the device cloud half (clause D1.2)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from agent.standin import openapi
from agent.standin.device_cloud.declared.everything import every_operation
from agent.standin.device_cloud.declared.onboarding import provisioning
from agent.standin.device_cloud.declared.shapes import (
    EVALUATION_TOKEN,
    JSON_WEB_TOKEN,
    ORGANIZATION_TOKEN,
    SIMPLE_TOKEN,
)

_SCHEMES = {
    SIMPLE_TOKEN: "The API key of a user in a team.",
    JSON_WEB_TOKEN: "A JWT of a device, or of a proxy server with a service key. ES256 only.",
    EVALUATION_TOKEN: "Deprecated: a JWT for location, for 30 days.",
    ORGANIZATION_TOKEN: "An organization auth token, for the projects of one organization.",
}
# Not among an operation's parameters: which value fits is known to no schema, so that a tool that
# makes up values by the document would make up refusals.
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


@lru_cache(maxsize=8)
def document(base_url: str, gps_day: int, provisioning_url: str = "") -> dict[str, Any]:
    """Return the document of this half, as it is true on a GPS day."""
    return openapi.document(
        every_operation(gps_day),
        title="Device cloud",
        description="The device cloud, as this stand-in answers for it.",
        server=base_url,
        schemes={
            name: {"type": "http", "scheme": "bearer", "description": text}
            for name, text in _SCHEMES.items()
        },
        error=_ERROR,
        parameters={"If-Match": _IF_MATCH},
        elsewhere={
            operation.name: provisioning_url
            for operation in provisioning()
            if provisioning_url not in {"", base_url}
        },
    )
