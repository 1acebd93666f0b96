"""GET /v1/openapi.json: the OpenAPI document of the device cloud half (clause D1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin.device_cloud.declared.everything import every_operation
from agent.standin.device_cloud.declared.shapes import (
    EVALUATION_TOKEN,
    JSON_WEB_TOKEN,
    ORGANIZATION_TOKEN,
    SIMPLE_TOKEN,
)
from agent.standin.dispatch import Endpoint
from agent.standin.errors import JSON

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.operation import Operation
    from agent.standin.state import Cloud

_SCHEMES = {
    SIMPLE_TOKEN: "The API key of a user in a team.",
    JSON_WEB_TOKEN: "A JWT of a device, or of a proxy server with a service key. ES256 only.",
    EVALUATION_TOKEN: "Deprecated: a JWT for location, for 30 days.",
    ORGANIZATION_TOKEN: "An organization auth token, for the projects of one organization.",
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the route of the document."""

    async def schema(_request: Request) -> Response:
        return JSON(document(cloud.urls["device_cloud"]))

    return [Endpoint("/v1/openapi.json", schema, methods=["GET"], name="Schema")]


def document(base_url: str) -> dict[str, Any]:
    """Return the document of this half."""
    paths: dict[str, Any] = {}
    for operation in every_operation():
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Device cloud (stand-in)", "version": "1"},
        "servers": [{"url": base_url}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                name: {"type": "http", "scheme": "bearer", "description": text}
                for name, text in _SCHEMES.items()
            },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
                }
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "security": [{name: []} for name in operation.security],
        "parameters": [
            {
                "name": parameter.name,
                "in": parameter.where,
                "required": parameter.required,
                "schema": parameter.schema,
                **({"description": parameter.description} if parameter.description else {}),
            }
            for parameter in operation.parameters
        ],
        "responses": _answers(operation),
    }
    if operation.bodies:
        shown["requestBody"] = {
            "required": operation.body_required,
            "content": {kind: {"schema": schema} for kind, schema in operation.bodies.items()},
        }
    if operation.deprecated:
        shown["deprecated"] = True
    return shown


def _answers(operation: Operation) -> dict[str, Any]:
    answers: dict[str, Any] = {
        str(status): {
            "description": "Done." if status == 200 else "Accepted.",
            **({"content": {k: {"schema": s} for k, s in content.items()}} if content else {}),
        }
        for status, content in operation.answers.items()
    }
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status in operation.refusals:
        answers[str(status)] = {"description": "Refused.", "content": error}
    return answers
