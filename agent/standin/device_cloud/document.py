"""GET /v1/openapi.json: the OpenAPI document of the device cloud half (clause D1.2)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from agent.standin import openapi
from agent.standin.device_cloud.declared.everything import every_operation
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
_ERROR = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
}


@lru_cache(maxsize=8)
def document(base_url: str) -> dict[str, Any]:
    """Return the document of this half."""
    return openapi.document(
        every_operation(),
        title="Device cloud",
        description="The device cloud, as this stand-in answers for it.",
        server=base_url,
        schemes={
            name: {"type": "http", "scheme": "bearer", "description": text}
            for name, text in _SCHEMES.items()
        },
        error=_ERROR,
    )
