"""The routes of the resources of a project, made from the table of them (clauses O1.2, O3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent.standin import state as seeded
from agent.standin.core.operation import Host, Link, Operation, Parameter
from agent.standin.core.responses import JSON
from agent.standin.observability import shapes
from agent.standin.observability.access import Access, Role
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served
from agent.standin.observability.project import SLUG
from agent.standin.observability.refusals import not_found
from agent.standin.observability.resources import changes, views
from agent.standin.observability.resources.catalogue import (
    COHORTS,
    DEVICES,
    ID,
    RESOURCES,
    Resource,
)
from agent.standin.observability.resources.conventions import (
    list_parameters,
    many,
    one,
    page_of,
    select,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.standin.core.schema import Schema
    from agent.standin.observability.exchange import Handler
    from agent.standin.observability.project import Project, Record

ORGANIZATION = "/api/v0/organizations/{organization_slug}"
PROJECT = ORGANIZATION + "/projects/{project_slug}"
_MAX_REMOVED = 1000

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


def served() -> list[Served]:
    """Return the operations of all resources of a project."""
    found: list[Served] = []
    for resource in RESOURCES:
        found += [_list(resource), _get(resource)]
        if resource.create is not None:
            found.append(_create(resource))
        if resource.change is not None:
            found.append(_change(resource))
        if resource.remove is not None:
            found.append(_remove(resource))
        if resource.remove_many:
            found.append(_remove_many(resource))
    return [*found, _relate()]


def find(project: Project, resource: Resource, key: str) -> Record:
    """Return the record of a resource. Raises 404."""
    if resource is COHORTS:
        project.cohort(key)
    if resource.key_schema is ID:
        key = str(int(key))
    record: Record | None = project.table(resource.name).get(key)
    if record is None:
        raise not_found(f"{resource.singular.lower()} {key!r}")
    return record


def by_project(
    method: str,
    path: str,
    name: str,
    summary: str,
    handler: Handler,
    *,
    tag: str,
    role: Role = Role.MEMBER,
    parameters: tuple[Parameter, ...] = (),
    body: Schema | None = None,
    answers: dict[int, Schema | None],
    refusals: tuple[int, ...] = (),
    hosts: tuple[Host, ...] = (Host.API,),
    before: Callable[[Any], None] | None = None,
    links: tuple[Link, ...] = (),
) -> Served:
    """Declare an operation below a project that users and organization tokens may call."""
    operation = Operation(
        method=method,
        path=PROJECT + path,
        name=name,
        summary=summary,
        tag=tag,
        security=("Basic",),
        parameters=(ORGANIZATION_PARAMETER, PROJECT_PARAMETER, *parameters),
        bodies={JSON_TYPE: body} if body is not None else {},
        answers={
            status: {} if schema is None else {JSON_TYPE: schema}
            for status, schema in answers.items()
        },
        links=links,
        refusals=(*((400, 413, 415) if body is not None else (400,)), 401, 403, 404, *refusals),
    )
    return Served(
        operation=operation,
        handler=handler,
        access=Access.USER,
        hosts=hosts,
        role=role,
        before=before,
    )


def _list(resource: Resource) -> Served:
    async def handler(exchange: Exchange) -> Response:
        project = exchange.project
        if resource is COHORTS:
            project.cohort("default")
        records = sorted(project.table(resource.name).values(), key=resource.order, reverse=True)
        found = select(records, exchange.query, resource.filters, resource.sorts)
        return page_of(found, exchange.query, lambda record: resource.show(project, record))

    return by_project(
        "GET",
        f"/{resource.name}",
        f"List{resource.singular}s",
        f"List the {resource.name}",
        handler,
        tag=resource.name,
        parameters=list_parameters(resource.filters, resource.sorts),
        answers={200: many(resource.schema)},
    )


def _get(resource: Resource) -> Served:
    async def handler(exchange: Exchange) -> Response:
        record = find(exchange.project, resource, exchange.path[resource.key])
        return JSON({"data": resource.show(exchange.project, record)})

    return by_project(
        "GET",
        f"/{resource.name}/{{{resource.key}}}",
        f"Get{resource.singular}",
        f"Get one of the {resource.name}",
        handler,
        tag=resource.name,
        parameters=(_key(resource),),
        answers={200: one(resource.schema)},
    )


def _create(resource: Resource) -> Served:
    async def handler(exchange: Exchange) -> Response:
        assert resource.create is not None
        record = resource.create(exchange)
        return JSON({"data": resource.show(exchange.project, record)}, 201)

    return by_project(
        "POST",
        f"/{resource.name}",
        f"Create{resource.singular}",
        f"Create one of the {resource.name}",
        handler,
        tag=resource.name,
        role=Role.PROJECT_MANAGER,
        body=resource.create_body,
        answers={201: one(resource.schema)},
        links=_goes_on(resource),
        refusals=(409,),
    )


def _goes_on(resource: Resource) -> tuple[Link, ...]:
    """Return the links from what was made to what can be done with it."""
    shown = resource.schema["properties"]
    name = resource.key if resource.key in shown else resource.key.rpartition("_")[2]
    made = {one: f"$request.path.{one}" for one in ("organization_slug", "project_slug")}
    made[resource.key] = f"$response.body#/data/{name}"
    words = ("Get", "Update", "Delete")
    return tuple(Link(status=201, to=word + resource.singular, parameters=made) for word in words)


def _change(resource: Resource) -> Served:
    async def handler(exchange: Exchange) -> Response:
        assert resource.change is not None
        record = find(exchange.project, resource, exchange.path[resource.key])
        changed = resource.change(exchange, record)
        return JSON({"data": resource.show(exchange.project, changed)})

    return by_project(
        "PATCH",
        f"/{resource.name}/{{{resource.key}}}",
        f"Update{resource.singular}",
        f"Change any number of fields of one of the {resource.name}",
        handler,
        tag=resource.name,
        role=Role.PROJECT_MANAGER,
        parameters=(_key(resource),),
        body=resource.change_body,
        answers={200: one(resource.schema)},
        refusals=(409,),
    )


def _remove(resource: Resource) -> Served:
    async def handler(exchange: Exchange) -> Response:
        assert resource.remove is not None
        record = find(exchange.project, resource, exchange.path[resource.key])
        resource.remove(exchange.project, record)
        return Response(status_code=204)

    return by_project(
        "DELETE",
        f"/{resource.name}/{{{resource.key}}}",
        f"Delete{resource.singular}",
        f"Delete one of the {resource.name}",
        handler,
        tag=resource.name,
        role=Role.PROJECT_MANAGER,
        parameters=(_key(resource),),
        answers={204: None},
        refusals=(409,),
    )


def _remove_many(resource: Resource) -> Served:
    async def handler(exchange: Exchange) -> Response:
        assert resource.remove is not None
        body: Any = exchange.body
        keys = [str(key) for key in (body if isinstance(body, list) else body["ids"])]
        table = exchange.project.table(resource.name)
        # An id or the slug: what a list shows names both.
        by_id = {str(record["id"]): record for record in table.values()}
        records = [table.get(key) or by_id.get(key) for key in keys]
        missing = [key for key, record in zip(keys, records, strict=True) if record is None]
        if missing:
            raise not_found(f"{resource.name} {', '.join(missing[:10])}")
        for record in {found["id"]: found for found in records if found is not None}.values():
            resource.remove(exchange.project, record)
        return Response(status_code=204)

    ids: Schema = {
        "type": "array",
        "items": {"type": ["string", "integer"]},
        "minItems": 1,
        "maxItems": _MAX_REMOVED,
    }
    return by_project(
        "DELETE",
        f"/{resource.name}",
        f"Delete{resource.singular}s",
        f"Delete many of the {resource.name}: ids as a list, or under `ids`",
        handler,
        tag=resource.name,
        role=Role.PROJECT_MANAGER,
        body={"anyOf": [ids, shapes.shape(ids=ids)]},
        answers={204: None},
        refusals=(409,),
    )


def _relate() -> Served:
    async def handler(exchange: Exchange) -> Response:
        slug, serial = exchange.path["cohort_slug"], exchange.path["device_serial"]
        find(exchange.project, COHORTS, slug)
        find(exchange.project, DEVICES, serial)
        record = changes.put_device_in_cohort(exchange, serial, slug)
        return JSON({"data": views.device(exchange.project, record)})

    return by_project(
        "PUT",
        "/cohorts/{cohort_slug}/devices/{device_serial}",
        "PutDeviceInCohort",
        "Create or change the relation of a device to its cohort",
        handler,
        tag="cohorts",
        role=Role.PROJECT_MANAGER,
        parameters=(_key(COHORTS), _key(DEVICES)),
        answers={200: one(shapes.DEVICE)},
    )


def _key(resource: Resource) -> Parameter:
    return Parameter(name=resource.key, schema=resource.key_schema, where="path", required=True)
