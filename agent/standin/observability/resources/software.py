"""Software types and versions: never made by a call, but by uploads and by what devices run.

A pipeline asks for a version before it uploads it again, and after a deployment for the page of it.
"""

from collections.abc import Iterator

from msgspec import Struct
from starlette.responses import Response

from agent.standin.core.operation import in_path
from agent.standin.core.responses import JSON
from agent.standin.core.schema import NUMBER, TEXT, Schema, object_schema
from agent.standin.observability import tables
from agent.standin.observability.operations import PROJECT_PATH, RequestContext, declare
from agent.standin.observability.project import Project
from agent.standin.observability.refusals import not_found
from agent.standin.observability.resources.lists import (
    Listing,
    filters,
    item_schema,
    page_schema,
    readers,
)
from agent.standin.observability.resources.serializers import shown

_NAME: Schema = {"type": "string", "maxLength": 512}
_TYPE = object_schema(name=TEXT, is_primary_type={"type": "boolean"}, active_device_count=NUMBER)
_VERSION = object_schema(version=TEXT, software_type=TEXT)


class SoftwareVersion(Struct, frozen=True, order=True):
    """A version of one kind of software."""

    software_type: str
    version: str


class SoftwareType(Struct):
    """A kind of software; a primary one gives its version to the releases."""

    name: str
    is_primary_type: bool
    active_device_count: int


def _versions(project: Project) -> list[SoftwareVersion]:
    return sorted({SoftwareVersion(*pair) for pair in _named(project)})


def _named(project: Project) -> Iterator[tuple[str, str]]:
    """Yield each type and version that a payload, a file or a device has named."""
    for table in (tables.RELEASES, tables.DELTA_RELEASES):
        for release in project.table(table).values():
            for one in release.artifacts:
                yield one.software_type, str(one.more.get("component_version", release.version))
    for file in project.table(tables.FILES).values():
        if isinstance(of := file.details.get("software_version"), dict):  # of symbols
            yield str(of["software_type"]), str(of["version"])
        elif of is not None:
            yield str(file.details.get("software_type")), str(of)
    for install in project.table(tables.INSTALLS).values():
        yield install.software_type, install.release_to


def _types(project: Project) -> list[SoftwareType]:
    devices = project.table(tables.DEVICES).values()
    primary = {
        one.software_type
        for release in project.table(tables.RELEASES).values()
        for one in release.artifacts
        if "component_version" not in one.more
    }
    return [
        SoftwareType(name, name in primary, sum(name in one.software for one in devices))
        for name in sorted({one.software_type for one in _versions(project)})
    ]


_TYPES: Listing[SoftwareType] = Listing(
    filters=filters("any", "name"), sorts=readers(*_TYPE["properties"])
)
_VERSIONS: Listing[SoftwareVersion] = Listing(
    filters=filters("any", "version"), sorts=readers("version")
)


async def _list_types(context: RequestContext) -> Response:
    types = _types(context.project)
    return _TYPES.list_response(types, context.query, lambda one: shown(_TYPE, one))


async def _list_versions(context: RequestContext) -> Response:
    name = context.path["software_type"]
    versions = [one for one in _versions(context.project) if one.software_type == name]
    if not versions:
        raise not_found(f"software type {name!r}")
    return _VERSIONS.list_response(versions, context.query, lambda one: shown(_VERSION, one))


async def _get_version(context: RequestContext) -> Response:
    wanted = SoftwareVersion(context.path["software_type"], context.path["version"])
    if wanted not in _versions(context.project):
        raise not_found(f"version {wanted.version!r} of {wanted.software_type!r}")
    return JSON({"data": shown(_VERSION, wanted)})


_OF = in_path("software_type", _NAME)
_VERSIONS_PATH = f"{PROJECT_PATH}/software_types/{{software_type}}/software_versions"
OPERATIONS = (
    declare(
        f"GET {PROJECT_PATH}/software_types", "ListSoftwareTypes", "List the software types",
        _list_types, tag="software", parameters=_TYPES.list_parameters,
        answers={200: page_schema(_TYPE)},
    ),
    declare(
        f"GET {PROJECT_PATH}/software_type_values", "ListSoftwareTypeValues",
        "The same under the path that released tools ask", _list_types, tag="software",
        parameters=_TYPES.list_parameters, answers={200: page_schema(_TYPE)},
    ),
    declare(
        f"GET {_VERSIONS_PATH}", "ListSoftwareVersions", "List the versions of a software type",
        _list_versions, tag="software",
        parameters=(_OF, *_VERSIONS.list_parameters),
        answers={200: page_schema(_VERSION)},
    ),
    declare(
        f"GET {_VERSIONS_PATH}/{{version}}", "GetSoftwareVersion", "Get a version, if it is known",
        _get_version, tag="software", parameters=(_OF, in_path("version", _NAME)),
        answers={200: item_schema(_VERSION)},
    ),
)  # fmt: skip
