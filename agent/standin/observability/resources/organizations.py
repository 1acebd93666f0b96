"""Organizations, projects, the current user, user API keys, project keys (clauses O1.3, O5.5)."""

import secrets
from typing import Any

from starlette.responses import Response

from agent.standin import state
from agent.standin.core.responses import JSON
from agent.standin.core.schema import TEXT, Schema, body_schema, object_schema, texts
from agent.standin.observability import schemas
from agent.standin.observability.access import Access, Role, reachable
from agent.standin.observability.operations import (
    ORGANIZATION_PATH,
    PROJECT_PATH,
    RequestContext,
    declare,
)
from agent.standin.observability.project import SLUG, Project, timestamp
from agent.standin.observability.refusals import conflict
from agent.standin.observability.resources import lists, serializers

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 1000}
_CHANGE = body_schema(name=_NAME)
_NEW_PROJECT = body_schema("slug", slug=SLUG, name=_NAME)
_USER_KEY_PATH = "/auth/api_key"
_PROJECTS_PATH = ORGANIZATION_PATH + "/projects"
_KEY = lists.item_schema(object_schema(api_key=TEXT))
_LISTING: lists.Listing[Any] = lists.Listing(
    filters={**lists.filters("any", "slug"), **lists.filters("since", **lists.MADE)},
    sorts=lists.readers("name", "slug"),
)
_ME = object_schema(
    **texts("id", "email", "name"),
    organizations={"type": "array", "items": object_schema(id=TEXT, name=TEXT, slug=TEXT)},
)


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
    return _LISTING.list_response(records, context.query, _to_json)


async def _organization(context: RequestContext) -> Response:
    record = context.cloud.table(state.ORGANIZATIONS)[context.path["organization_slug"]]
    return JSON({"data": _to_json(record)})


async def _change_organization(context: RequestContext) -> Response:
    record = context.cloud.table(state.ORGANIZATIONS)[context.path["organization_slug"]]
    record.name = context.body.get("name", record.name)
    context.cloud.table(state.ORGANIZATIONS).put(record.slug, record)
    return JSON({"data": _to_json(record)})


async def _projects(context: RequestContext) -> Response:
    slug = context.path["organization_slug"]
    every = context.cloud.table(state.PROJECTS).values()
    records = [record for record in every if record.organization == slug]
    return _LISTING.list_response(
        records,
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


def _to_json(record: state.Organization) -> dict[str, object]:
    return serializers.shown(schemas.ORGANIZATION, record)


def _user(context: RequestContext) -> state.User:
    return context.cloud.table(state.USERS)[context.principal.email]


def _set_user_key(context: RequestContext, key: str) -> None:
    user = _user(context)
    user.user_api_key = key
    context.cloud.table(state.USERS).put(user.email, user)


_ONE, _PROJECT = lists.item_schema(schemas.ORGANIZATION), lists.item_schema(schemas.PROJECT)
OPERATIONS = (
    declare(
        "GET /auth/me", "WhoAmI", "Check email and password or user API key", _me,
        tag="auth", access=Access.BASIC, answers={200: _ME},
    ),
    declare(
        f"GET {_USER_KEY_PATH}", "GetUserApiKey", "Show the user's API key", _user_key,
        tag="auth", access=Access.BASIC, answers={200: _KEY},
    ),
    declare(
        f"POST {_USER_KEY_PATH}", "CycleUserApiKey", "Make or cycle the user's API key",
        _cycle_user_key, tag="auth", access=Access.BASIC, answers={200: _KEY},
    ),
    declare(
        f"DELETE {_USER_KEY_PATH}", "DeleteUserApiKey", "Delete the user's API key",
        _delete_user_key, tag="auth", access=Access.BASIC, answers={204: None},
    ),
    declare(
        "GET /api/v0/organizations", "ListOrganizations",
        "List the organizations that the credential reaches", _organizations,
        tag="organizations", parameters=_LISTING.list_parameters,
        answers={200: lists.page_schema(schemas.ORGANIZATION)},
    ),
    declare(
        f"GET {ORGANIZATION_PATH}", "GetOrganization", "Get one of the organizations",
        _organization, tag="organizations", answers={200: _ONE},
    ),
    declare(
        f"PATCH {ORGANIZATION_PATH}", "UpdateOrganization", "Change an organization",
        _change_organization, tag="organizations", role=Role.ADMIN, body=_CHANGE,
        answers={200: _ONE},
    ),
    declare(
        f"GET {_PROJECTS_PATH}", "ListProjects", "List the projects of an organization",
        _projects, tag="organizations", parameters=_LISTING.list_parameters,
        answers={200: lists.page_schema(schemas.PROJECT)},
    ),
    declare(
        f"POST {_PROJECTS_PATH}", "CreateProject", "Create a project; its key is made with it",
        _create_project, tag="organizations", role=Role.ADMIN, body=_NEW_PROJECT,
        answers={201: _PROJECT}, refusals=(409,),
    ),
    declare(
        f"GET {PROJECT_PATH}", "GetProject", "Get one of the projects", _project,
        tag="projects", answers={200: _PROJECT},
    ),
    declare(
        f"PATCH {PROJECT_PATH}", "UpdateProject", "Change a project", _change_project,
        tag="projects", role=Role.PROJECT_MANAGER, body=_CHANGE, answers={200: _PROJECT},
    ),
    declare(
        f"GET {PROJECT_PATH}/api_key", "GetProjectKey", "Show the project key", _project_key,
        tag="projects", answers={200: _KEY},
    ),
    declare(
        f"POST {PROJECT_PATH}/api_key", "CycleProjectKey",
        "Cycle the project key; the one before stops at once", _cycle_project_key,
        tag="projects", role=Role.PROJECT_MANAGER, answers={200: _KEY},
    ),
)  # fmt: skip
