"""Operations of the observability half: a declaration, its handler, and the access it needs.

How a request is checked against it is in `agent.standin.core.serving`; the handler gets the project
as well.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from agent.json_value import JSONValue
from agent.standin.core import serving
from agent.standin.core.dispatch import DEFAULT_MAX_BODY
from agent.standin.core.operation import Host, Link, Operation, Parameter, in_path
from agent.standin.core.responses import Refused
from agent.standin.core.schema import Errors, Schema, parse_datetime
from agent.standin.observability import refusals
from agent.standin.observability.access import Access, Role, authenticate, role_in
from agent.standin.observability.project import SLUG, Project
from agent.standin.principal import CredentialKind, Principal
from agent.standin.state import ORGANIZATION, PROJECT, Cloud

JSON_TYPE = serving.JSON_TYPE
ORGANIZATION_PATH = "/api/v0/organizations/{organization_slug}"
PROJECT_PATH = ORGANIZATION_PATH + "/projects/{project_slug}"
ORGANIZATION_PARAMETER = in_path("organization_slug", {**SLUG, "examples": [ORGANIZATION]})
PROJECT_PARAMETER = in_path("project_slug", {**SLUG, "examples": [PROJECT]})
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
    Access.OPEN: ((), "", set()),
}


class RequestContext(serving.CheckedRequest):
    """A checked request. It has a project where the path or the project key names one."""

    project: Project


Handler: TypeAlias = "Callable[[RequestContext], Awaitable[Response]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedOperation(serving.CheckedOperation[RequestContext]):
    """An operation with its handler, the access that it needs, and its hosts."""

    access: Access = Access.USER
    hosts: tuple[Host, ...] = (Host.API,)
    also: tuple[Host, ...] = ()
    """Hosts that serve it too, since tools know one address for several; a strict one does not."""
    role: Role = Role.MEMBER
    """The lowest role that a user needs."""

    def authenticate(self, request: Request, cloud: Cloud) -> Principal:
        """Return the caller. Raises 401, 403."""
        return authenticate(request, cloud, self.access)

    def context(
        self, request: Request, cloud: Cloud, principal: Principal, path: dict[str, str]
    ) -> RequestContext:
        """Return the context with its project, if any. Raises 403, 404."""
        role, project = _role_and_project(principal, cloud, path)
        if role.value < self.role.value:
            raise refusals.forbidden(f"this takes the role of {self.role.name.lower()}")
        context = RequestContext(request, self, cloud, principal, path)
        if project is not None:
            context.project = project
        return context

    @property
    def checks_body_first(self) -> bool:
        """Whether the body is JSON in one form."""
        return JSON_TYPE in self.operation.bodies and not self.own_body

    def convert(self, text: str, schema: Schema) -> object:
        """Return a whole number or a truth value where the schema is of one, else the text."""
        kind = schema.get("type")
        digits = text.removeprefix("-")
        if kind == "integer" and digits.isascii() and digits.isdigit() and len(digits) < 30:
            return int(text)
        return _TRUTHS.get(text, text) if kind == "boolean" else text

    def moment(self, text: str) -> float | None:
        """Return Unix seconds; the service accepts only the form of ISO 8601 that ends in Z."""
        return parse_datetime(text) if text.endswith("Z") and "T" in text else None

    def refuse_fields(self, errors: dict[str, Errors]) -> Refused:
        """400: texts by field."""
        return refusals.invalid_fields(errors)

    def refuse_body(self, errors: Errors) -> Refused:
        """400: a text for the whole body, or texts by field."""
        if isinstance(errors, dict):
            return refusals.invalid_fields(errors)
        return refusals.invalid("; ".join(errors))

    def refuse_json(self, problem: str) -> Refused:
        """400."""
        return refusals.invalid(f"the body is no JSON: {problem}")

    def refuse_media_type(self, media_type: str) -> Refused:
        """415."""
        return refusals.ObservabilityRefused(
            415, f"the body is to be {JSON_TYPE}, not {media_type or 'of no type at all'}"
        )


def declare(
    call: str,
    name: str,
    summary: str,
    handler: Handler,
    *,
    tag: str,
    answers: Mapping[int, Schema | None],
    answered_as: str = JSON_TYPE,
    access: Access = Access.USER,
    role: Role = Role.MEMBER,
    hosts: tuple[Host, ...] = (Host.API,),
    also: tuple[Host, ...] = (),
    description: str = "",
    parameters: Sequence[Parameter] = (),
    body: Schema | None = None,
    bodies: Mapping[str, Schema] | None = None,
    refusals: Sequence[int] = (),
    links: tuple[Link, ...] = (),
    before: Callable[[JSONValue], None] | None = None,
    max_body: int = DEFAULT_MAX_BODY,
    own_body: bool = False,
) -> ServedOperation:
    """Return an operation; `call` is "METHOD /path", an answer None has no body.

    `body` is the schema of a JSON body, `bodies` those by media type. What access, path and body
    imply is added: credentials, the parameters for organization and project, and the refusals that
    come before the handler.
    """
    method, _, path = call.partition(" ")
    bodies = bodies or ({JSON_TYPE: body} if body is not None else {})
    security, note, statuses = _DECLARED_ACCESS[access]
    slugs = [one for one in (ORGANIZATION_PARAMETER, PROJECT_PARAMETER) if one.name in path]
    implied = {
        400: slugs or parameters or bodies,
        404: slugs,
        413: bodies,
        415: JSON_TYPE in bodies,
    }
    statuses = statuses | {status for status, may_happen in implied.items() if may_happen}
    operation = Operation(
        method=method,
        path=path,
        name=name,
        summary=summary,
        tag=tag,
        security=security,
        description=f"{note} {description}".strip(),
        parameters=(*slugs, *parameters),
        bodies=bodies,
        answers={
            status: {} if schema is None else {answered_as: schema}
            for status, schema in answers.items()
        },
        refusals=(*statuses, *refusals),
        links=links,
    )
    return ServedOperation(
        operation=operation,
        handler=handler,
        access=access,
        role=role,
        hosts=hosts,
        also=also,
        before=before,
        max_body=max_body,
        own_body=own_body,
    )


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
        raise refusals.not_found(f"project {slug!r}")
    return role, Project(cloud, organization, slug)
