"""The stand-in's own documents, OpenAPI 3.1, made from the operations that it declares.

The device cloud's names its two schemes as the service does. The observability service's declares
HTTP Basic alone, as its schema reference does, and describes the other mechanisms (clause O4.4).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agent.standin.core.dispatch import Endpoint
from agent.standin.core.errors import JSON
from agent.standin.core.hosts import ALSO_AT_API, Host
from agent.standin.core.operation import Operation
from agent.standin.observability.refusals import ERROR_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from agent.standin.core.operation import Parameter
    from agent.standin.core.schema import Schema
    from agent.standin.state import Cloud

OBSERVABILITY_PATH = "/api/v0/openapi.json"

PROJECT_KEY = "project key"
"""The tag of what accepts one."""
_JSON = "application/json"
_REASONS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted.",
    204: "Nothing to tell.",
    206: "The range that was asked for.",
    304: "Not modified.",
}
_MECHANISMS = """\
Four mechanisms open this API; the scheme `Basic` declares the first two.

- HTTP Basic with email and password: the user's access, not recommended.
- HTTP Basic with email and user API key: every organization of the user but those that require
  single sign-on. It stops working when the user is removed.
- `Authorization: Bearer <organization auth token>`, for automation: one organization, with a
  project manager's access to all its projects. Taken wherever `Basic` is, but for /auth.
- `Service-Project-Key: <project key>`: one project, no secret. Taken by the operations alone
  that say so, which take nothing else.
"""


_ITSELF = Operation(
    method="GET",
    path=OBSERVABILITY_PATH,
    name="GetSchema",
    summary="This document",
    tag="schema",
    answers={200: {_JSON: {"type": "object"}}},
)


def routes(cloud: Cloud) -> dict[Host, list[Route]]:
    """Return the routes that publish the documents; they ask for no credential."""

    async def observability(_request: Request) -> Response:
        return JSON(observability_document(tuple(cloud.urls.items())))

    return {Host.API: [Endpoint(OBSERVABILITY_PATH, observability, methods=["GET"])]}


@lru_cache(maxsize=8)
def observability_document(urls: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """Return the document of the observability half; `urls` are pairs of a host and its address."""
    from agent.standin.observability.routes import every_operation

    known = dict(urls)
    server = known.get(Host.API, "/")
    served_by = {
        served.operation.name: known.get(served.hosts[0], server)
        for served in every_operation()
        if not {Host.API, *ALSO_AT_API} & {*served.hosts}
    }
    return document(
        [_ITSELF, *(served.operation for served in every_operation())],
        title="Observability service",
        description=_MECHANISMS,
        server=server,
        schemes={"Basic": {"type": "http", "scheme": "basic"}},
        error=ERROR_SCHEMA,
        elsewhere={name: url for name, url in served_by.items() if url != server},
    )


def document(
    operations: Iterable[Operation],
    *,
    title: str,
    description: str,
    server: str,
    schemes: Mapping[str, Any],
    error: Schema,
    parameters: Mapping[str, Any] | None = None,
    elsewhere: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return an OpenAPI document of these operations.

    `parameters` are those that texts name; `elsewhere` are the addresses of operations, by name,
    that another host than `server` answers.
    """
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _operation(operation, schemes)
        if elsewhere and operation.name in elsewhere:
            described["servers"] = [{"url": elsewhere[operation.name]}]
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1.0", "description": description},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {
            "securitySchemes": dict(schemes),
            "schemas": {"Error": error},
            **({"parameters": dict(parameters)} if parameters else {}),
        },
    }


def _operation(operation: Operation, schemes: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag, *([PROJECT_KEY] if "ProjectKey" in operation.security else ())],
        # A mechanism that is only described stands in no scheme.
        "security": [{name: []} for name in operation.security if name in schemes],
        "responses": {
            str(status): _answer(_REASONS[status], media) | _links(operation, status)
            for status, media in operation.answers.items()
        }
        | {
            str(status): _answer("Refused.", {_JSON: {"$ref": "#/components/schemas/Error"}})
            for status in sorted(operation.refusals)
        },
    }
    if operation.description:
        described["description"] = operation.description
    if operation.deprecated:
        described["deprecated"] = True
    if operation.parameters:
        described["parameters"] = [_parameter(one) for one in operation.parameters]
    if operation.bodies:
        described["requestBody"] = {
            "required": operation.body_required,
            "content": {media: {"schema": schema} for media, schema in operation.bodies.items()},
        }
    return described


def _answer(text: str, media: Mapping[str, Schema]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": text}
    if media:
        answer["content"] = {name: {"schema": schema} for name, schema in media.items()}
    return answer


def _links(operation: Operation, status: int) -> dict[str, Any]:
    found = {
        link.to: {"operationId": link.to, "parameters": dict(link.parameters)}
        for link in operation.links
        if link.status == status
    }
    return {"links": found} if found else {}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required,
        "schema": parameter.schema,
    }
    if parameter.description:
        described["description"] = parameter.description
    if parameter.schema.get("type") in {"array", "object"}:
        # The name is repeated, without brackets; an object's fields stand by themselves.
        described |= {"style": "form", "explode": True}
    return described
