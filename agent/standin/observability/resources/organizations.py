"""Organizations, projects, who am I, and the two keys that a service makes (clauses O1.3, O5.5)."""

from __future__ import annotations

import secrets
import uuid
from typing import TYPE_CHECKING

from starlette.responses import Response

from agent.standin.core.operation import Host, Operation, Parameter
from agent.standin.core.responses import JSON
from agent.standin.observability import shapes
from agent.standin.observability.access import Access, Role, reachable
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served
from agent.standin.observability.project import SLUG, Project, timestamp
from agent.standin.observability.resources import views
from agent.standin.observability.resources.changes import conflict
from agent.standin.observability.resources.conventions import (
    Filter,
    list_parameters,
    many,
    one,
    page_of,
    select,
)
from agent.standin.observability.resources.resources import (
    ORGANIZATION,
    ORGANIZATION_PARAMETER,
    by_project,
)
from agent.standin.observability.shapes import TEXT, shape
from agent.standin.state import secret

if TYPE_CHECKING:
    from agent.standin.core.schema import Schema
    from agent.standin.observability.exchange import Handler
    from agent.standin.observability.project import Record

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 1000}
_KEY = one(shape(api_key=TEXT))
_FILTERS = {"slug": Filter(lambda record: record["slug"])}
_SORTS = {"name": lambda record: record["name"], "slug": lambda record: record["slug"]}
_ME = shape(
    id=TEXT,
    email=TEXT,
    name=TEXT,
    organizations={"type": "array", "items": shape(id=TEXT, name=TEXT, slug=TEXT)},
)


def served() -> list[Served]:
    """Return the operations above a project, and those of the keys."""
    return [
        _declare("GET", "/auth/me", "WhoAmI", "Check email and password or user API key", _me,
                 access=Access.BASIC, answer=_ME, tag="auth"),
        _declare("GET", "/auth/api_key", "GetUserApiKey", "Show the user's API key", _user_key,
                 access=Access.BASIC, answer=_KEY, tag="auth"),
        _declare("POST", "/auth/api_key", "CycleUserApiKey", "Make or cycle the user's API key",
                 _cycle_user_key, access=Access.BASIC, answer=_KEY, tag="auth"),
        _declare("DELETE", "/auth/api_key", "DeleteUserApiKey", "Delete the user's API key",
                 _delete_user_key, access=Access.BASIC, answer=None, tag="auth"),
        _declare("GET", "/api/v0/organizations", "ListOrganizations",
                 "List the organizations that the credential reaches", _organizations,
                 answer=many(shapes.ORGANIZATION),
                 parameters=list_parameters(_FILTERS, _SORTS)),
        _declare("GET", ORGANIZATION, "GetOrganization", "Get one of the organizations",
                 _organization, answer=one(shapes.ORGANIZATION),
                 parameters=(ORGANIZATION_PARAMETER,)),
        _declare("PATCH", ORGANIZATION, "UpdateOrganization", "Change an organization",
                 _change_organization, answer=one(shapes.ORGANIZATION), role=Role.ADMIN,
                 parameters=(ORGANIZATION_PARAMETER,),
                 body={"type": "object", "properties": {"name": _NAME}}),
        _declare("GET", ORGANIZATION + "/projects", "ListProjects",
                 "List the projects of an organization", _projects,
                 answer=many(shapes.PROJECT),
                 parameters=(ORGANIZATION_PARAMETER, *list_parameters(_FILTERS, _SORTS))),
        _declare("POST", ORGANIZATION + "/projects", "CreateProject",
                 "Create a project; its key is made with it", _create_project,
                 answer=one(shapes.PROJECT), status=201, role=Role.ADMIN,
                 parameters=(ORGANIZATION_PARAMETER,), refusals=(409,),
                 body={**shape(slug=SLUG), "properties": {"slug": SLUG, "name": _NAME}}),
        by_project("GET", "", "GetProject", "Get one of the projects", _project,
                   tag="projects", answers={200: one(shapes.PROJECT)}),
        by_project("PATCH", "", "UpdateProject", "Change a project", _change_project,
                   tag="projects", role=Role.PROJECT_MANAGER,
                   body={"type": "object", "properties": {"name": _NAME}},
                   answers={200: one(shapes.PROJECT)}),
        by_project("GET", "/api_key", "GetProjectKey", "Show the project key", _project_key,
                   tag="projects", answers={200: _KEY}),
        by_project("POST", "/api_key", "CycleProjectKey",
                   "Cycle the project key; the one before stops at once", _cycle_project_key,
                   tag="projects", role=Role.PROJECT_MANAGER, answers={200: _KEY}),
    ]  # fmt: skip


async def _me(exchange: Exchange) -> Response:
    user = _user(exchange)
    slugs = reachable(exchange.who, exchange.cloud)
    organizations = [exchange.cloud.table("organizations").get(slug) for slug in slugs]
    return JSON(
        {
            **{key: user[key] for key in ("id", "email", "name")},
            "created_date": timestamp(user["created"]),
            "updated_date": timestamp(user["created"]),
            "organizations": [
                {key: record[key] for key in ("id", "name", "slug")} for record in organizations
            ],
        }
    )


async def _user_key(exchange: Exchange) -> Response:
    return JSON({"data": {"api_key": _user(exchange)["user_api_key"] or ""}})


async def _cycle_user_key(exchange: Exchange) -> Response:
    user = {**_user(exchange), "user_api_key": secret("uk")}
    exchange.cloud.table("users").put(user["email"], user)
    return JSON({"data": {"api_key": user["user_api_key"]}})


async def _delete_user_key(exchange: Exchange) -> Response:
    user = _user(exchange)
    exchange.cloud.table("users").put(user["email"], {**user, "user_api_key": ""})
    return Response(status_code=204)


async def _organizations(exchange: Exchange) -> Response:
    table = exchange.cloud.table("organizations")
    records = [table.get(slug) for slug in reachable(exchange.who, exchange.cloud)]
    found = select(records, exchange.query, _FILTERS, _SORTS)
    return page_of(found, exchange.query, views.organization)


async def _organization(exchange: Exchange) -> Response:
    record = exchange.cloud.table("organizations").get(exchange.path["organization_slug"])
    return JSON({"data": views.organization(record)})


async def _change_organization(exchange: Exchange) -> Response:
    table = exchange.cloud.table("organizations")
    slug = exchange.path["organization_slug"]
    record = {**table.get(slug), **_named(exchange)}
    table.put(slug, record)
    return JSON({"data": views.organization(record)})


async def _projects(exchange: Exchange) -> Response:
    slug = exchange.path["organization_slug"]
    every = exchange.cloud.table("projects").values()
    records = [record for record in every if record["organization"] == slug]
    found = select(records, exchange.query, _FILTERS, _SORTS)
    return page_of(
        found,
        exchange.query,
        lambda record: views.project(Project(exchange.cloud, slug, record["slug"])),
    )


async def _create_project(exchange: Exchange) -> Response:
    organization, slug = exchange.path["organization_slug"], exchange.body["slug"]
    if exchange.cloud.project(organization, slug) is not None:
        raise conflict(f"project {slug} already exists")
    record = {
        "id": str(uuid.uuid4()),
        "slug": slug,
        "name": exchange.body.get("name", slug),
        "organization": organization,
        "project_key": secrets.token_hex(16),
        "location": False,
        "created": exchange.cloud.clock.time(),
    }
    exchange.cloud.table("projects").put(f"{organization}/{slug}", record)
    return JSON({"data": views.project(Project(exchange.cloud, organization, slug))}, 201)


async def _project(exchange: Exchange) -> Response:
    return JSON({"data": views.project(exchange.project)})


async def _change_project(exchange: Exchange) -> Response:
    _store(exchange.project, _named(exchange))
    return JSON({"data": views.project(exchange.project)})


async def _project_key(exchange: Exchange) -> Response:
    return JSON({"data": {"api_key": exchange.project.record["project_key"]}})


async def _cycle_project_key(exchange: Exchange) -> Response:
    _store(exchange.project, {"project_key": secrets.token_hex(16)})
    return await _project_key(exchange)


def _store(project: Project, changed: Record) -> None:
    key = f"{project.organization}/{project.slug}"
    project.cloud.table("projects").put(key, {**project.record, **changed})


def _user(exchange: Exchange) -> Record:
    found: Record = exchange.cloud.table("users").get(exchange.who.email)
    return found


def _named(exchange: Exchange) -> Record:
    return {"name": exchange.body["name"]} if "name" in exchange.body else {}


def _declare(
    method: str,
    path: str,
    name: str,
    summary: str,
    handler: Handler,
    *,
    answer: Schema | None,
    access: Access = Access.USER,
    status: int = 200,
    role: Role = Role.MEMBER,
    parameters: tuple[Parameter, ...] = (),
    body: Schema | None = None,
    refusals: tuple[int, ...] = (),
    tag: str = "organizations",
) -> Served:
    # Where nothing can be wrong with a request beside the credential, nothing else is promised.
    wrong = (400, 413, 415) if body is not None else (400,) if parameters else ()
    missing = (404,) if ORGANIZATION_PARAMETER in parameters else ()
    operation = Operation(
        method=method,
        path=path,
        name=name,
        summary=summary,
        tag=tag,
        security=("Basic",),
        parameters=parameters,
        bodies={JSON_TYPE: body} if body is not None else {},
        answers={204: {}} if answer is None else {status: {JSON_TYPE: answer}},
        refusals=(*wrong, 401, 403, *missing, *refusals),
    )
    return Served(operation=operation, handler=handler, access=access, hosts=(Host.API,), role=role)
