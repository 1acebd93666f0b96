"""Operations to list, get, create, change and delete each resource of the table (O1.2, O3.1)."""

from collections.abc import Sequence

from starlette.responses import Response

from agent.standin.core.operation import Link, Parameter, in_path
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema, object_schema
from agent.standin.observability import schemas, tables
from agent.standin.observability.access import Role
from agent.standin.observability.operations import (
    PROJECT_PATH,
    RequestContext,
    ServedOperation,
    declare,
)
from agent.standin.observability.project import DEFAULT_COHORT, Project
from agent.standin.observability.refusals import not_found
from agent.standin.observability.resources import changes, lists, resource_table
from agent.standin.observability.resources.resource_table import R, ResourceKind

_MAX_REMOVED = 1000


def find(project: Project, resource: ResourceKind[R], key: str) -> R:
    """Return the record of a resource by its key. Raises 404."""
    if resource.table is tables.COHORTS:
        project.cohort(key)
    if resource.key_schema is resource_table.ID:
        key = str(int(key))
    record = project.table(resource.table).get(key)
    if record is None:
        raise not_found(f"{resource.singular.lower()} {key!r}")
    return record


def _list(resource: ResourceKind[R]) -> ServedOperation:
    async def handler(context: RequestContext) -> Response:
        project = context.project
        if resource.table is tables.COHORTS:
            project.cohort(DEFAULT_COHORT)
        every = project.table(resource.table).values()
        records = lists.sort(every, resource.order, descending=True)
        return resource.list_response(
            records, context.query, lambda record: resource.to_json(project, record)
        )

    return declare(
        f"GET {_many(resource)}", f"List{resource.singular}s", f"List the {resource.name}",
        handler, tag=resource.name, parameters=resource.list_parameters,
        answers={200: lists.page_schema(resource.schema)},
    )  # fmt: skip


def _get(resource: ResourceKind[R]) -> ServedOperation:
    async def handler(context: RequestContext) -> Response:
        record = find(context.project, resource, context.path[resource.key])
        return JSON({"data": resource.to_json(context.project, record)})

    return declare(
        f"GET {_one(resource)}", f"Get{resource.singular}", f"Get one of the {resource.name}",
        handler, tag=resource.name, parameters=(_key(resource),),
        answers={200: lists.item_schema(resource.schema)},
    )  # fmt: skip


def _create(resource: ResourceKind[R]) -> ServedOperation:
    async def handler(context: RequestContext) -> Response:
        assert resource.create is not None
        record = resource.create(context)
        return JSON({"data": resource.to_json(context.project, record)}, resource.created_status)

    return declare(
        f"POST {_many(resource)}", f"Create{resource.singular}",
        f"Create one of the {resource.name}", handler,
        tag=resource.name, role=Role.PROJECT_MANAGER, body=resource.create_body,
        answers={resource.created_status: lists.item_schema(resource.schema)},
        links=_links(resource), refusals=(409,),
    )  # fmt: skip


def _links(resource: ResourceKind[R]) -> tuple[Link, ...]:
    """Return the OpenAPI links from a created resource to its other operations."""
    made = {name: f"$request.path.{name}" for name in ("organization_slug", "project_slug")}
    made[resource.key] = f"$response.body#/data/{resource.key_field}"
    words = ("Get", "Update", "Delete")
    return tuple(
        Link(status=resource.created_status, to=word + resource.singular, parameters=made)
        for word in words
    )


def _change(resource: ResourceKind[R]) -> ServedOperation:
    async def handler(context: RequestContext) -> Response:
        project = context.project
        record = find(project, resource, context.path[resource.key])
        resource.before_change(context, record)
        changes.set_given(context, record)
        if hasattr(record, "updated"):
            record.updated = project.now
        project.table(resource.table).put(str(getattr(record, resource.key_field)), record)
        return JSON({"data": resource.to_json(project, record)})

    return declare(
        f"PATCH {_one(resource)}", f"Update{resource.singular}",
        f"Change any number of fields of one of the {resource.name}", handler,
        tag=resource.name, role=Role.PROJECT_MANAGER, parameters=(_key(resource),),
        body=resource.change_body, answers={200: lists.item_schema(resource.schema)},
        refusals=(409,),
    )  # fmt: skip


def _remove(resource: ResourceKind[R]) -> ServedOperation:
    async def handler(context: RequestContext) -> Response:
        record = find(context.project, resource, context.path[resource.key])
        return _remove_all(context.project, resource, [record])

    return declare(
        f"DELETE {_one(resource)}", f"Delete{resource.singular}",
        f"Delete one of the {resource.name}", handler,
        tag=resource.name, role=Role.PROJECT_MANAGER, parameters=(_key(resource),),
        answers={204: None}, refusals=(409,),
    )  # fmt: skip


def _remove_all(project: Project, resource: ResourceKind[R], records: Sequence[R]) -> Response:
    assert resource.remove is not None
    for record in records:
        resource.require_removable(project, record)
    for record in records:
        resource.remove(project, record)
    return Response(status_code=204)


def _remove_many(resource: ResourceKind[R]) -> ServedOperation:
    async def handler(context: RequestContext) -> Response:
        body = context.body
        keys = [str(key) for key in (body if isinstance(body, list) else body["ids"])]
        table = context.project.table(resource.table)
        # Either an id or the slug: lists show both.
        by_id = {str(record.id): record for record in table.values()}
        records = [table.get(key) or by_id.get(key) for key in keys]
        missing = [key for key, record in zip(keys, records, strict=True) if record is None]
        if missing:
            raise not_found(f"{resource.name} {', '.join(missing[:10])}")
        found = {record.id: record for record in records if record is not None}
        return _remove_all(context.project, resource, list(found.values()))

    ids: Schema = {
        "type": "array",
        "items": {"type": ["string", "integer"]},
        "minItems": 1,
        "maxItems": _MAX_REMOVED,
    }
    return declare(
        f"DELETE {_many(resource)}", f"Delete{resource.singular}s",
        f"Delete many of the {resource.name}: ids as a list, or under `ids`", handler,
        tag=resource.name, role=Role.PROJECT_MANAGER, answers={204: None}, refusals=(409,),
        body={"anyOf": [ids, object_schema(ids=ids)]},
    )  # fmt: skip


async def _put_device_in_cohort(context: RequestContext) -> Response:
    project, slug = context.project, context.path["cohort_slug"]
    find(project, resource_table.COHORTS, slug)
    device = find(project, resource_table.DEVICES, context.path["device_serial"])
    changes.put_device_in_cohort(project, device, slug)
    return JSON({"data": resource_table.DEVICES.to_json(project, device)})


def _many(resource: ResourceKind[R]) -> str:
    return f"{PROJECT_PATH}/{resource.name}"


def _one(resource: ResourceKind[R]) -> str:
    return f"{_many(resource)}/{{{resource.key}}}"


def _key(resource: ResourceKind[R]) -> Parameter:
    return in_path(resource.key, resource.key_schema)


def _offered(resource: ResourceKind[R]) -> list[ServedOperation]:
    """Return the operations that there are for one resource."""
    may = (
        (True, _list), (True, _get), (resource.create, _create), (resource.change_body, _change),
        (resource.remove, _remove), (resource.remove_many, _remove_many),
    )  # fmt: skip
    return [operation(resource) for offered, operation in may if offered]


OPERATIONS = (
    *(served for resource in resource_table.RESOURCES for served in _offered(resource)),
    declare(
        f"PUT {PROJECT_PATH}/cohorts/{{cohort_slug}}/devices/{{device_serial}}",
        "PutDeviceInCohort", "Create or change the relation of a device to its cohort",
        _put_device_in_cohort, tag="cohorts", role=Role.PROJECT_MANAGER,
        parameters=(_key(resource_table.COHORTS), _key(resource_table.DEVICES)),
        answers={200: lists.item_schema(schemas.DEVICE)},
    ),
)  # fmt: skip
