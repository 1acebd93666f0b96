"""Operations of the observability half: a declaration, its handler, and the access it needs.

A request is checked against the declaration, which the OpenAPI document shows as well; the handler
gets the caller, the project, the parameters and the body in one `RequestContext`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from agent.standin import state as seeded
from agent.standin.core.dispatch import DEFAULT_MAX_BODY, Endpoint
from agent.standin.core.operation import Host, Operation, Parameter
from agent.standin.core.schema import (
    NOT_A_DATETIME,
    BadJSON,
    Errors,
    Schema,
    check,
    decode,
    parse_datetime,
)
from agent.standin.observability.access import Access, Role, authenticate, role_in
from agent.standin.observability.project import SLUG, Project
from agent.standin.observability.refusals import (
    ObservabilityRefused,
    forbidden,
    invalid,
    invalid_fields,
    not_found,
)
from agent.standin.principal import CredentialKind, Principal
from agent.standin.state import Cloud

JSON_TYPE = "application/json"
ORGANIZATION_PATH = "/api/v0/organizations/{organization_slug}"
PROJECT_PATH = ORGANIZATION_PATH + "/projects/{project_slug}"
ORGANIZATION_PARAMETER = Parameter(
    name="organization_slug",
    schema={**SLUG, "examples": [seeded.ORGANIZATION]},
    where="path",
    required=True,
)
PROJECT_PARAMETER = Parameter(
    name="project_slug",
    schema={**SLUG, "examples": [seeded.PROJECT]},
    where="path",
    required=True,
)
_TRUTHS = {"true": True, "false": False}
# What the document says of each access: credentials, a note, refusals.
_DECLARED_ACCESS: dict[Access, tuple[tuple[str, ...], str, set[int]]] = {
    Access.USER: (("Basic",), "", {401, 403}),
    Access.BASIC: (("Basic",), "", {401, 403}),
    Access.PROJECT_KEY: (("ProjectKey",), "Accepts the project key.", {403}),
    Access.USER_OR_PROJECT_KEY: (
        ("Basic", "ProjectKey"),
        "Accepts the project key, too.",
        {401, 403},
    ),
    Access.SIGNED: ((), "", set()),
}


@dataclass(slots=True)
class RequestContext:
    """A checked request. `project_or_none` is None where neither path nor key names a project."""

    cloud: Cloud
    request: Request
    principal: Principal
    path: dict[str, str]
    query: dict[str, Any]
    body: Any
    role: Role
    project_or_none: Project | None

    @property
    def project(self) -> Project:
        """The project that the path or the project key names."""
        assert self.project_or_none is not None
        return self.project_or_none


Handler: TypeAlias = "Callable[[RequestContext], Awaitable[Response]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedOperation:
    """An operation with its handler, the access that it needs, and its hosts."""

    operation: Operation
    """Declared without what `complete` adds."""
    handler: Handler
    access: Access = Access.USER
    hosts: tuple[Host, ...] = (Host.API,)
    role: Role = Role.MEMBER
    """The lowest role that a user needs."""
    max_body: int = DEFAULT_MAX_BODY
    before: Callable[[Any], None] | None = None
    """Refuses a JSON body with a message of its own, before the schema is checked."""
    own_body: bool = False
    """Whether the handler reads the body itself, because the body has more than one form."""


def complete(served: ServedOperation) -> ServedOperation:
    """Return an operation whose declaration also says what its access, path and body imply.

    That is: its credentials, the parameters for organization and project, and the refusals that
    come before its handler.
    """
    operation = served.operation
    security, note, refusals = _DECLARED_ACCESS[served.access]
    slugs = [
        one for one in (ORGANIZATION_PARAMETER, PROJECT_PARAMETER) if one.name in operation.path
    ]
    implied = {
        400: slugs or operation.parameters or operation.bodies,
        404: slugs,
        413: operation.bodies,
        415: JSON_TYPE in operation.bodies,
    }
    refusals = refusals | {status for status, may_happen in implied.items() if may_happen}
    declaration = replace(
        operation,
        security=security,
        description=f"{note} {operation.description}".strip(),
        parameters=(*slugs, *operation.parameters),
        refusals=(*refusals, *operation.refusals),
    )
    return replace(served, operation=declaration)


def endpoint(served: ServedOperation, cloud: Cloud) -> Endpoint:
    """Return the route that serves an operation."""
    operation = served.operation

    async def answer(request: Request) -> Response:
        principal = authenticate(request, cloud, served.access)
        path = {name: str(value) for name, value in request.path_params.items()}
        _check_path(path, operation)
        role, project = _role_and_project(principal, cloud, path)
        if role.value < served.role.value:
            raise forbidden(f"this takes the role of {served.role.name.lower()}")
        query = _query(request, operation)
        body = None
        if JSON_TYPE in operation.bodies and not served.own_body:
            body = await _body(request, operation, served.before)
        return await served.handler(
            RequestContext(cloud, request, principal, path, query, body, role, project)
        )

    return Endpoint(
        operation.path,
        answer,
        methods=[operation.method],
        name=operation.name,
        max_body=served.max_body,
    )


def _check_path(path: dict[str, str], operation: Operation) -> None:
    schemas = {one.name: one.schema for one in operation.parameters if one.where == "path"}
    errors_by_name = {}
    for name, value in path.items():
        schema = schemas.get(name, {})
        errors = check(_convert(value, schema)[0], schema)
        if errors:
            errors_by_name[name] = errors
    if errors_by_name:
        raise invalid_fields(errors_by_name)


def _role_and_project(
    principal: Principal, cloud: Cloud, path: dict[str, str]
) -> tuple[Role, Project | None]:
    """Return the caller's role in the organization of the path, and the project, if any."""
    if principal.kind is CredentialKind.PROJECT_KEY:
        return Role.MEMBER, Project(cloud, principal.organization, principal.project)
    organization = path.get("organization_slug")
    if organization is None:
        return Role.MEMBER, None
    role = role_in(principal, cloud, organization)
    slug = path.get("project_slug")
    if slug is None:
        return role, None
    if cloud.project(organization, slug) is None:
        raise not_found(f"project {slug!r}")
    return role, Project(cloud, organization, slug)


def _query(request: Request, operation: Operation) -> dict[str, Any]:
    values: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for parameter in operation.parameters:
        if parameter.where != "query":
            continue
        given = request.query_params.getlist(parameter.name)
        if not given:
            if parameter.required:
                errors[parameter.name] = ["Missing data for required field."]
            elif "default" in parameter.schema:
                values[parameter.name] = parameter.schema["default"]
            continue
        value, parameter_errors = _parameter(given, parameter)
        if parameter_errors:
            errors[parameter.name] = parameter_errors
        else:
            values[parameter.name] = value
    if errors:
        raise invalid_fields(errors)
    return values


def _parameter(given: list[str], parameter: Parameter) -> tuple[Any, Any]:
    """Return the value of a query parameter, and its errors."""
    schema = parameter.schema
    if schema.get("type") == "array":
        # A list-valued parameter repeats its name; the `[]` of the reference is notation.
        items = [_convert(one, schema["items"])[0] for one in given]
        return items, check(items, schema)
    if len(given) > 1:
        return None, ["It may be given once."]
    value, instant = _convert(given[0], schema)
    if schema.get("format") == "date-time":
        # The service accepts only the form of ISO 8601 that ends in Z.
        if instant is None or not given[0].endswith("Z") or "T" not in given[0]:
            return None, [NOT_A_DATETIME]
        return instant, None
    return value, check(value, schema)


def _convert(text: str, schema: Schema) -> tuple[Any, float | None]:
    """Return a parameter as the type of its schema, and a date in Unix seconds, else None."""
    kind = schema.get("type")
    if kind == "integer":
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) < 30:
            return int(text), None
    elif kind == "boolean":
        return _TRUTHS.get(text, text), None
    elif schema.get("format") == "date-time":
        return text, parse_datetime(text)
    return text, None


async def _body(
    request: Request, operation: Operation, before: Callable[[Any], None] | None
) -> Any:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    raw = await request.body()
    if not raw and not media and not operation.body_required:
        return None
    if media != JSON_TYPE:
        raise ObservabilityRefused(415, f"the body is to be {JSON_TYPE}, not {media or 'untold'}")
    value = decode_json(raw)
    if before is not None:
        before(value)
    raise_if_invalid(check(value, operation.bodies[JSON_TYPE]))
    return value


def raise_if_invalid(errors: Errors) -> None:
    """Raise 400 if there are errors: a text for the whole body, or texts by field."""
    if isinstance(errors, dict) and errors:
        raise invalid_fields(errors)
    if errors:
        raise invalid("; ".join(errors))


def decode_json(raw: bytes) -> Any:
    """Return the JSON value of a body. Raises 400."""
    try:
        return decode(raw)
    except BadJSON as error:
        raise invalid(f"the body is no JSON: {error}") from error
