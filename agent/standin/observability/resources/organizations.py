"""Organizations, projects, the current user, user API keys, project keys (clauses O1.3, O5.5)."""

from __future__ import annotations

import secrets
from operator import attrgetter
from typing import Any

from starlette.responses import Response

from agent.standin import state
from agent.standin.core.operation import Operation
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.observability import schemas
from agent.standin.observability.access import Access, Role, reachable
from agent.standin.observability.operations import (
    JSON_TYPE,
    ORGANIZATION_PATH,
    PROJECT_PATH,
    RequestContext,
    ServedOperation,
)
from agent.standin.observability.project import SLUG, Project, timestamp
from agent.standin.observability.refusals import conflict
from agent.standin.observability.resources import lists, serializers
from agent.standin.observability.schemas import TEXT, object_schema

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 1000}
_CHANGE: Schema = {"type": "object", "properties": {"name": _NAME}}
_NEW_PROJECT = {**object_schema(slug=SLUG), "properties": {"slug": SLUG, "name": _NAME}}
_USER_KEY_PATH = "/auth/api_key"
_PROJECTS_PATH = ORGANIZATION_PATH + "/projects"
_KEY = lists.item_schema(object_schema(api_key=TEXT))
_FILTERS: dict[str, lists.FieldFilter[Any]] = {
    "slug": lists.FieldFilter(attrgetter("slug")),
    **lists.since(created_date="created", first_seen="created"),
}
_SORTS = {"name": attrgetter("name"), "slug": attrgetter("slug")}
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
    me = Operation(
        method="GET", path="/auth/me", name="WhoAmI", tag="auth",
        summary="Check email and password or user API key", answers={200: {JSON_TYPE: _ME}},
    )  # fmt: skip
    key = Operation(
        method="GET", path=_USER_KEY_PATH, name="GetUserApiKey", tag="auth",
        summary="Show the user's API key", answers={200: {JSON_TYPE: _KEY}},
    )  # fmt: skip
    cycle = Operation(
        method="POST", path=_USER_KEY_PATH, name="CycleUserApiKey", tag="auth",
        summary="Make or cycle the user's API key", answers={200: {JSON_TYPE: _KEY}},
    )  # fmt: skip
    delete = Operation(
        method="DELETE", path=_USER_KEY_PATH, name="DeleteUserApiKey", tag="auth",
        summary="Delete the user's API key", answers={204: {}},
    )  # fmt: skip
    return [
        ServedOperation(operation=me, handler=_me, access=Access.BASIC),
        ServedOperation(operation=key, handler=_user_key, access=Access.BASIC),
        ServedOperation(operation=cycle, handler=_cycle_user_key, access=Access.BASIC),
        ServedOperation(operation=delete, handler=_delete_user_key, access=Access.BASIC),
    ]


def _organization_operations() -> list[ServedOperation]:
    every = Operation(
        method="GET", path="/api/v0/organizations", name="ListOrganizations", tag="organizations",
        summary="List the organizations that the credential reaches",
        parameters=lists.list_parameters(_FILTERS, _SORTS),
        answers={200: {JSON_TYPE: lists.page_schema(schemas.ORGANIZATION)}},
    )  # fmt: skip
    one = Operation(
        method="GET", path=ORGANIZATION_PATH, name="GetOrganization", tag="organizations",
        summary="Get one of the organizations",
        answers={200: {JSON_TYPE: lists.item_schema(schemas.ORGANIZATION)}},
    )  # fmt: skip
    change = Operation(
        method="PATCH", path=ORGANIZATION_PATH, name="UpdateOrganization", tag="organizations",
        summary="Change an organization", bodies={JSON_TYPE: _CHANGE},
        answers={200: {JSON_TYPE: lists.item_schema(schemas.ORGANIZATION)}},
    )  # fmt: skip
    projects = Operation(
        method="GET", path=_PROJECTS_PATH, name="ListProjects", tag="organizations",
        summary="List the projects of an organization",
        parameters=lists.list_parameters(_FILTERS, _SORTS),
        answers={200: {JSON_TYPE: lists.page_schema(schemas.PROJECT)}},
    )  # fmt: skip
    create = Operation(
        method="POST", path=_PROJECTS_PATH, name="CreateProject", tag="organizations",
        summary="Create a project; its key is made with it", bodies={JSON_TYPE: _NEW_PROJECT},
        answers={201: {JSON_TYPE: lists.item_schema(schemas.PROJECT)}}, refusals=(409,),
    )  # fmt: skip
    return [
        ServedOperation(operation=every, handler=_organizations),
        ServedOperation(operation=one, handler=_organization),
        ServedOperation(operation=change, handler=_change_organization, role=Role.ADMIN),
        ServedOperation(operation=projects, handler=_projects),
        ServedOperation(operation=create, handler=_create_project, role=Role.ADMIN),
    ]


def _project_operations() -> list[ServedOperation]:
    one = Operation(
        method="GET", path=PROJECT_PATH, name="GetProject", tag="projects",
        summary="Get one of the projects",
        answers={200: {JSON_TYPE: lists.item_schema(schemas.PROJECT)}},
    )  # fmt: skip
    change = Operation(
        method="PATCH", path=PROJECT_PATH, name="UpdateProject", tag="projects",
        summary="Change a project", bodies={JSON_TYPE: _CHANGE},
        answers={200: {JSON_TYPE: lists.item_schema(schemas.PROJECT)}},
    )  # fmt: skip
    key = Operation(
        method="GET", path=PROJECT_PATH + "/api_key", name="GetProjectKey", tag="projects",
        summary="Show the project key", answers={200: {JSON_TYPE: _KEY}},
    )  # fmt: skip
    cycle = Operation(
        method="POST", path=PROJECT_PATH + "/api_key", name="CycleProjectKey", tag="projects",
        summary="Cycle the project key; the one before stops at once",
        answers={200: {JSON_TYPE: _KEY}},
    )  # fmt: skip
    manager = Role.PROJECT_MANAGER
    return [
        ServedOperation(operation=one, handler=_project),
        ServedOperation(operation=change, handler=_change_project, role=manager),
        ServedOperation(operation=key, handler=_project_key),
        ServedOperation(operation=cycle, handler=_cycle_project_key, role=manager),
    ]


async def _me(context: RequestContext) -> Response:
    user = _user(context)
    slugs = reachable(context.principal, context.cloud)
    organizations = [context.cloud.table(state.ORGANIZATIONS)[slug] for slug in slugs]
    return JSON(
        {
            "id": user.id,
            "email": user.email,
            "name": user.name,
            "created_date": timestamp(user.created),
            "updated_date": timestamp(user.created),
            "organizations": [
                {"id": one.id, "name": one.name, "slug": one.slug} for one in organizations
            ],
        }
    )


async def _user_key(context: RequestContext) -> Response:
    return JSON({"data": {"api_key": _user(context).user_api_key}})


async def _cycle_user_key(context: RequestContext) -> Response:
    _set_user_key(context, state.secret("uk"))
    return await _user_key(context)


async def _delete_user_key(context: RequestContext) -> Response:
    _set_user_key(context, "")
    return Response(status_code=204)


async def _organizations(context: RequestContext) -> Response:
    table = context.cloud.table(state.ORGANIZATIONS)
    records = [table[slug] for slug in reachable(context.principal, context.cloud)]
    selected = lists.filter_and_sort(records, context.query, _FILTERS, _SORTS)
    return lists.page_response(selected, context.query, serializers.organization)


async def _organization(context: RequestContext) -> Response:
    record = context.cloud.table(state.ORGANIZATIONS)[context.path["organization_slug"]]
    return JSON({"data": serializers.organization(record)})


async def _change_organization(context: RequestContext) -> Response:
    record = context.cloud.table(state.ORGANIZATIONS)[context.path["organization_slug"]]
    record.name = context.body.get("name", record.name)
    context.cloud.table(state.ORGANIZATIONS).put(record.slug, record)
    return JSON({"data": serializers.organization(record)})


async def _projects(context: RequestContext) -> Response:
    slug = context.path["organization_slug"]
    every = context.cloud.table(state.PROJECTS).values()
    records = [record for record in every if record.organization == slug]
    selected = lists.filter_and_sort(records, context.query, _FILTERS, _SORTS)
    return lists.page_response(
        selected,
        context.query,
        lambda record: serializers.project(Project(context.cloud, slug, record.slug)),
    )


async def _create_project(context: RequestContext) -> Response:
    organization, slug = context.path["organization_slug"], context.body["slug"]
    if context.cloud.project(organization, slug) is not None:
        raise conflict(f"project {slug} already exists")
    state.make_project(context.cloud, organization, slug, context.body.get("name", slug))
    return JSON({"data": serializers.project(Project(context.cloud, organization, slug))}, 201)


async def _project(context: RequestContext) -> Response:
    return JSON({"data": serializers.project(context.project)})


async def _change_project(context: RequestContext) -> Response:
    record = context.project.record
    record.name = context.body.get("name", record.name)
    context.cloud.put_project(record)
    return JSON({"data": serializers.project(context.project)})


async def _project_key(context: RequestContext) -> Response:
    return JSON({"data": {"api_key": context.project.record.project_key}})


async def _cycle_project_key(context: RequestContext) -> Response:
    record = context.project.record
    record.project_key = secrets.token_hex(16)
    context.cloud.put_project(record)
    return await _project_key(context)


def _user(context: RequestContext) -> state.User:
    return context.cloud.table(state.USERS)[context.principal.email]


def _set_user_key(context: RequestContext, key: str) -> None:
    user = _user(context)
    user.user_api_key = key
    context.cloud.table(state.USERS).put(user.email, user)
