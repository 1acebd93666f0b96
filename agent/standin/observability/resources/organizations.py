"""Organizations, projects, the current user, user API keys, project keys (clauses O1.3, O5.5)."""

from __future__ import annotations

import secrets
import uuid

from starlette.responses import Response

from agent.standin.core.operation import Host, Operation, Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.observability import schemas
from agent.standin.observability.access import Access, Role, reachable
from agent.standin.observability.operations import (
    JSON_TYPE,
    ORGANIZATION_PARAMETER,
    ORGANIZATION_PATH,
    Handler,
    RequestContext,
    ServedOperation,
    project_operation,
)
from agent.standin.observability.project import SLUG, Project, Record, timestamp
from agent.standin.observability.refusals import conflict
from agent.standin.observability.resources import lists, serializers
from agent.standin.observability.schemas import TEXT, object_schema
from agent.standin.state import secret

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 1000}
_KEY = lists.item_schema(object_schema(api_key=TEXT))
_FILTERS = {"slug": lists.Filter(lambda record: record["slug"])}
_SORTS = {"name": lambda record: record["name"], "slug": lambda record: record["slug"]}
_ME = object_schema(
    id=TEXT,
    email=TEXT,
    name=TEXT,
    organizations={"type": "array", "items": object_schema(id=TEXT, name=TEXT, slug=TEXT)},
)


def operations() -> list[ServedOperation]:
    """Return the operations on organizations, projects, the current user and the keys."""
    return [*_user_operations(), *_organization_operations(), *_project_operations()]


def _user_operations() -> list[ServedOperation]:
    return [
        _declare(
            "GET",
            "/auth/me",
            "WhoAmI",
            "Check email and password or user API key",
            _me,
            access=Access.BASIC,
            answer=_ME,
            tag="auth",
        ),
        _declare(
            "GET",
            "/auth/api_key",
            "GetUserApiKey",
            "Show the user's API key",
            _user_key,
            access=Access.BASIC,
            answer=_KEY,
            tag="auth",
        ),
        _declare(
            "POST",
            "/auth/api_key",
            "CycleUserApiKey",
            "Make or cycle the user's API key",
            _cycle_user_key,
            access=Access.BASIC,
            answer=_KEY,
            tag="auth",
        ),
        _declare(
            "DELETE",
            "/auth/api_key",
            "DeleteUserApiKey",
            "Delete the user's API key",
            _delete_user_key,
            access=Access.BASIC,
            answer=None,
            tag="auth",
        ),
    ]


def _organization_operations() -> list[ServedOperation]:
    return [
        _declare(
            "GET",
            "/api/v0/organizations",
            "ListOrganizations",
            "List the organizations that the credential reaches",
            _organizations,
            answer=lists.page_schema(schemas.ORGANIZATION),
            parameters=lists.list_parameters(_FILTERS, _SORTS),
        ),
        _declare(
            "GET",
            ORGANIZATION_PATH,
            "GetOrganization",
            "Get one of the organizations",
            _organization,
            answer=lists.item_schema(schemas.ORGANIZATION),
            parameters=(ORGANIZATION_PARAMETER,),
        ),
        _declare(
            "PATCH",
            ORGANIZATION_PATH,
            "UpdateOrganization",
            "Change an organization",
            _change_organization,
            answer=lists.item_schema(schemas.ORGANIZATION),
            role=Role.ADMIN,
            parameters=(ORGANIZATION_PARAMETER,),
            body={"type": "object", "properties": {"name": _NAME}},
        ),
        _declare(
            "GET",
            ORGANIZATION_PATH + "/projects",
            "ListProjects",
            "List the projects of an organization",
            _projects,
            answer=lists.page_schema(schemas.PROJECT),
            parameters=(ORGANIZATION_PARAMETER, *lists.list_parameters(_FILTERS, _SORTS)),
        ),
        _declare(
            "POST",
            ORGANIZATION_PATH + "/projects",
            "CreateProject",
            "Create a project; its key is made with it",
            _create_project,
            answer=lists.item_schema(schemas.PROJECT),
            status=201,
            role=Role.ADMIN,
            parameters=(ORGANIZATION_PARAMETER,),
            refusals=(409,),
            body={**object_schema(slug=SLUG), "properties": {"slug": SLUG, "name": _NAME}},
        ),
    ]


def _project_operations() -> list[ServedOperation]:
    return [
        project_operation(
            "GET",
            "",
            "GetProject",
            "Get one of the projects",
            _project,
            tag="projects",
            answers={200: lists.item_schema(schemas.PROJECT)},
        ),
        project_operation(
            "PATCH",
            "",
            "UpdateProject",
            "Change a project",
            _change_project,
            tag="projects",
            role=Role.PROJECT_MANAGER,
            body={"type": "object", "properties": {"name": _NAME}},
            answers={200: lists.item_schema(schemas.PROJECT)},
        ),
        project_operation(
            "GET",
            "/api_key",
            "GetProjectKey",
            "Show the project key",
            _project_key,
            tag="projects",
            answers={200: _KEY},
        ),
        project_operation(
            "POST",
            "/api_key",
            "CycleProjectKey",
            "Cycle the project key; the one before stops at once",
            _cycle_project_key,
            tag="projects",
            role=Role.PROJECT_MANAGER,
            answers={200: _KEY},
        ),
    ]


async def _me(context: RequestContext) -> Response:
    user = _user(context)
    slugs = reachable(context.principal, context.cloud)
    organizations = [context.cloud.table("organizations").get(slug) for slug in slugs]
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


async def _user_key(context: RequestContext) -> Response:
    return JSON({"data": {"api_key": _user(context)["user_api_key"] or ""}})


async def _cycle_user_key(context: RequestContext) -> Response:
    user = {**_user(context), "user_api_key": secret("uk")}
    context.cloud.table("users").put(user["email"], user)
    return JSON({"data": {"api_key": user["user_api_key"]}})


async def _delete_user_key(context: RequestContext) -> Response:
    user = _user(context)
    context.cloud.table("users").put(user["email"], {**user, "user_api_key": ""})
    return Response(status_code=204)


async def _organizations(context: RequestContext) -> Response:
    table = context.cloud.table("organizations")
    records = [table.get(slug) for slug in reachable(context.principal, context.cloud)]
    selected = lists.filter_and_sort(records, context.query, _FILTERS, _SORTS)
    return lists.page_response(selected, context.query, serializers.organization)


async def _organization(context: RequestContext) -> Response:
    record = context.cloud.table("organizations").get(context.path["organization_slug"])
    return JSON({"data": serializers.organization(record)})


async def _change_organization(context: RequestContext) -> Response:
    table = context.cloud.table("organizations")
    slug = context.path["organization_slug"]
    record = {**table.get(slug), **_new_name(context)}
    table.put(slug, record)
    return JSON({"data": serializers.organization(record)})


async def _projects(context: RequestContext) -> Response:
    slug = context.path["organization_slug"]
    every = context.cloud.table("projects").values()
    records = [record for record in every if record["organization"] == slug]
    selected = lists.filter_and_sort(records, context.query, _FILTERS, _SORTS)
    return lists.page_response(
        selected,
        context.query,
        lambda record: serializers.project(Project(context.cloud, slug, record["slug"])),
    )


async def _create_project(context: RequestContext) -> Response:
    organization, slug = context.path["organization_slug"], context.body["slug"]
    if context.cloud.project(organization, slug) is not None:
        raise conflict(f"project {slug} already exists")
    record = {
        "id": str(uuid.uuid4()),
        "slug": slug,
        "name": context.body.get("name", slug),
        "organization": organization,
        "project_key": secrets.token_hex(16),
        "location": False,
        "created": context.cloud.clock.time(),
    }
    context.cloud.table("projects").put(f"{organization}/{slug}", record)
    return JSON({"data": serializers.project(Project(context.cloud, organization, slug))}, 201)


async def _project(context: RequestContext) -> Response:
    return JSON({"data": serializers.project(context.project)})


async def _change_project(context: RequestContext) -> Response:
    _store_project(context.project, _new_name(context))
    return JSON({"data": serializers.project(context.project)})


async def _project_key(context: RequestContext) -> Response:
    return JSON({"data": {"api_key": context.project.record["project_key"]}})


async def _cycle_project_key(context: RequestContext) -> Response:
    _store_project(context.project, {"project_key": secrets.token_hex(16)})
    return await _project_key(context)


def _store_project(project: Project, changed: Record) -> None:
    key = f"{project.organization}/{project.slug}"
    project.cloud.table("projects").put(key, {**project.record, **changed})


def _user(context: RequestContext) -> Record:
    user: Record = context.cloud.table("users").get(context.principal.email)
    return user


def _new_name(context: RequestContext) -> Record:
    return {"name": context.body["name"]} if "name" in context.body else {}


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
) -> ServedOperation:
    # Without parameters and body only the credential can be wrong.
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
    return ServedOperation(
        operation=operation, handler=handler, access=access, hosts=(Host.API,), role=role
    )
