"""OpenAPI 3.1 documents, made from the operations that are declared."""

from collections.abc import Iterable, Mapping

from agent.standin.core.operation import Operation, Parameter
from agent.standin.core.schema import Schema

PROJECT_KEY = "project key"
"""The tag of operations that accept one."""
_JSON = "application/json"
_REASONS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted.",
    204: "Nothing to tell.",
    206: "The range that was asked for.",
    304: "Not modified.",
}


def document(
    operations: Iterable[Operation],
    *,
    title: str,
    description: str,
    server: str,
    components: Mapping[str, Mapping[str, object]],
    elsewhere: Mapping[str, str],
) -> dict[str, object]:
    """Return an OpenAPI document of these operations.

    `components` are those of the document: "securitySchemes", and "Error" of "schemas", are among
    them. `elsewhere` are the base URLs, by name, of operations that another host serves.
    """
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        described = _operation(operation, components["securitySchemes"])
        if operation.name in elsewhere:
            described["servers"] = [{"url": elsewhere[operation.name]}]
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1.0", "description": description},
        "servers": [{"url": server}],
        "paths": paths,
        "components": components,
    }


def _operation(operation: Operation, schemes: Mapping[str, object]) -> dict[str, object]:
    described: dict[str, object] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag, *([PROJECT_KEY] if "ProjectKey" in operation.security else ())],
        # A mechanism that is only described has no scheme.
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


def _answer(text: str, media: Mapping[str, Schema]) -> dict[str, object]:
    answer: dict[str, object] = {"description": text}
    if media:
        answer["content"] = {name: {"schema": schema} for name, schema in media.items()}
    return answer


def _links(operation: Operation, status: int) -> dict[str, object]:
    found = {
        link.to: {"operationId": link.to, "parameters": dict(link.parameters)}
        for link in operation.links
        if link.status == status
    }
    return {"links": found} if found else {}


def _parameter(parameter: Parameter) -> dict[str, object]:
    described: dict[str, object] = {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required,
        "schema": parameter.schema,
    }
    if parameter.description:
        described["description"] = parameter.description
    if parameter.schema.get("type") in {"array", "object"}:
        # The name is repeated, without brackets; each field of an object is a parameter.
        described |= {"style": "form", "explode": True}
    return described
