"""The resources of a project as one table: what each shows, filters, sorts, takes and refuses.

A method that a resource has no entry for has no route, and is refused with the `Allow` header
(clause O3.1: not every route exists for every resource).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.standin.observability import schemas
from agent.standin.observability.project import RELEASE_VERSION, SLUG, VERSION
from agent.standin.observability.resources import changes, serializers
from agent.standin.observability.resources.lists import Filter
from agent.standin.observability.schemas import body_schema

if TYPE_CHECKING:
    from agent.standin.core.schema import Schema
    from agent.standin.observability.operations import RequestContext
    from agent.standin.observability.project import Project, Record

Show = Callable[["Project", "Record"], dict[str, Any]]
Read = Callable[["Record"], Any]

ID: Schema = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
_TEXT: Schema = {"type": "string", "maxLength": 1000}
_STEP: Schema = {"type": "array", "items": RELEASE_VERSION, "minItems": 2, "maxItems": 2}
_RELEASE_OR_STEP: Schema = {"anyOf": [RELEASE_VERSION, _STEP]}
"""A version, or the two between which a delta release leads."""
_PERCENT: Schema = {"type": "integer", "minimum": 0, "maximum": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource. `create` and `change` get the checked exchange and return the record."""

    name: str
    """Its segment of the path, and the name of its table."""
    singular: str
    key: str = "id"
    """The name of its path parameter."""
    key_schema: Schema = field(default_factory=lambda: ID)
    schema: Schema
    show: Show
    filters: Mapping[str, Filter] = field(default_factory=dict)
    sorts: Mapping[str, Read] = field(default_factory=dict)
    order: Read = field(default=lambda record: record["id"])
    """What a list is sorted by when nobody says; the newest first."""
    create: Callable[[RequestContext], Record] | None = None
    create_body: Schema = field(default_factory=dict)
    change: Callable[[RequestContext, Record], Record] | None = None
    change_body: Schema = field(default_factory=dict)
    remove: Callable[[Project, Record], None] | None = None
    remove_many: bool = False


def _reading(name: str) -> Read:
    return lambda record: record[name]


def _by(*names: str, **fields: str) -> dict[str, Read]:
    """Return what sorts by fields, under their own names or those that are shown."""
    return {name: _reading(of) for name, of in _named(names, fields)}


def _each(*names: str, **fields: str) -> dict[str, Filter]:
    """Return filters that take values of fields, under their own names or those given."""
    return {name: Filter(_reading(of)) for name, of in _named(names, fields)}


def _since(*names: str, **fields: str) -> dict[str, Filter]:
    """Return filters that take the instant from which on a field counts."""
    text = "At or after this instant."
    return {name: Filter(_reading(of), "since", text) for name, of in _named(names, fields)}


def _until(**fields: str) -> dict[str, Filter]:
    """Return filters that take the instant up to which a field counts."""
    text = "At or before this instant."
    return {name: Filter(_reading(of), "until", text) for name, of in fields.items()}


def _named(names: tuple[str, ...], fields: dict[str, str]) -> list[tuple[str, str]]:
    return [*zip(names, names, strict=True), *fields.items()]


_OF_A_RELEASE: dict[str, Schema] = {
    "revision": _TEXT,
    "notes": _TEXT,
    "extra_info": schemas.OPEN_OR_NULL,
    "must_pass_through": {"type": "boolean"},
}
_OF_A_DEVICE: dict[str, Schema] = {
    "hardware_version": VERSION,
    "owner_ref": schemas.TEXT_OR_NULL,
    "nickname": _TEXT,
    "description": _TEXT,
    "cohort": SLUG,
}
_DATES = {"created_date": "created", "updated_date": "updated"}

RELEASES = Resource(
    name="releases",
    singular="Release",
    key="release_version",
    key_schema=RELEASE_VERSION,
    schema=schemas.RELEASE,
    show=lambda scope, record: serializers.release(scope, record, ""),
    filters=_since(**_DATES),
    sorts=_by("version", **_DATES),
    create=changes.create_release,
    create_body=body_schema(
        "version",
        version=RELEASE_VERSION,
        min_version={"anyOf": [RELEASE_VERSION, {"enum": [""]}]},
        **_OF_A_RELEASE,
    ),
    change=changes.change_release,
    change_body=body_schema(**_OF_A_RELEASE),
    remove=changes.remove_release,
    remove_many=True,
)
COHORTS = Resource(
    name="cohorts",
    singular="Cohort",
    key="cohort_slug",
    key_schema=SLUG,
    schema=schemas.COHORT,
    show=serializers.cohort,
    filters=_since(**_DATES),
    sorts=_by("name", "slug", **_DATES),
    create=changes.create_cohort,
    create_body=body_schema("slug", slug=SLUG, name=_TEXT),
    change=changes.change_cohort,
    change_body=body_schema(name=_TEXT),
    remove=changes.remove_cohort,
)
DEVICES = Resource(
    name="devices",
    singular="Device",
    key="device_serial",
    key_schema=SLUG,
    schema=schemas.DEVICE,
    show=serializers.device,
    filters={
        **_each("device_serial", "cohort", "owner_ref", "hardware_version"),
        **_each(release="last_seen_release"),
        **_since(last_seen_since="last_seen", **_DATES),
        **_until(last_seen_until="last_seen"),
    },
    sorts=_by("device_serial", "last_seen", **_DATES),
    create=changes.create_device,
    create_body=body_schema(
        "device_serial", "hardware_version", device_serial=SLUG, **_OF_A_DEVICE
    ),
    change=changes.change_device,
    change_body=body_schema(**_OF_A_DEVICE),
    remove=changes.remove_device,
    remove_many=True,
)
DEPLOYMENTS = Resource(
    name="deployments",
    singular="Deployment",
    schema=schemas.DEPLOYMENT,
    show=serializers.deployment,
    filters={
        **_each("cohort", "delta_from", "status"),
        "release": Filter(lambda record: None if record["delta_from"] else record["release"]),
        "delta_to": Filter(lambda record: record["release"] if record["delta_from"] else None),
        **_since(deployed_date="deployed"),
    },
    sorts=_by(deployed_date="deployed", id="id"),
    create=changes.create_deployment,
    create_body=body_schema(
        "release",
        "cohort",
        type={"type": "string", "enum": ["normal", "staged_rollout"]},
        release=_RELEASE_OR_STEP,
        cohort=SLUG,
        rollout_percent=_PERCENT,
        extra_info=schemas.OPEN_OR_NULL,
    ),
    change=changes.change_deployment,
    change_body=body_schema(rollout_percent=_PERCENT),
    remove=changes.abort_deployment,
)
EVENTS = Resource(
    name="events",
    singular="Event",
    schema=schemas.EVENT,
    show=serializers.event,
    filters={
        **_each("device", "type", "release"),
        **_since(since="captured", created_date="created"),
        **_until(until="captured"),
    },
    sorts=_by(created_date="created", captured_date="captured", received_date="received", id="id"),
)
TRACES = Resource(
    name="traces",
    singular="Trace",
    schema=schemas.TRACE,
    show=serializers.trace,
    filters={
        **_each("device", "issue", "release", "source"),
        **_since(since="captured", created_date="created"),
        **_until(until="captured"),
    },
    sorts=_by(created_date="created", captured_date="captured", id="id"),
)
ISSUES = Resource(
    name="issues",
    singular="Issue",
    schema=schemas.ISSUE,
    show=serializers.issue,
    filters={**_each("status"), **_since("first_seen", "last_seen", created_date="created")},
    sorts={
        **_by("first_seen", "last_seen", trace_count="traces"),
        "device_count": lambda record: len(record["devices"]),
        **_by("id"),
    },
    order=_reading("last_seen"),
    change=changes.change_issue,
    change_body=body_schema(
        status={"type": "string", "enum": ["open", "closed", "resolved"]}, title=_TEXT
    ),
)
INSTALLS = Resource(
    name="installs",
    singular="Install",
    schema=schemas.INSTALL,
    show=serializers.install,
    filters={**_each("device", "status"), **_since(began_at="began")},
    sorts=_by(began_at="began", id="id"),
)
COREDUMPS = Resource(
    name="coredumps",
    singular="Coredump",
    schema=schemas.COREDUMP,
    show=serializers.coredump,
    filters={**_each("device"), **_since(created_date="created")},
    sorts=_by(created_date="created", id="id"),
)
FILES = Resource(
    name="files",
    singular="File",
    schema=schemas.FILE,
    show=serializers.file,
    filters={**_each("kind", "name"), **_since(created_date="created")},
    sorts=_by(created_date="created", name="name", id="id"),
)

RESOURCES = (
    RELEASES,
    COHORTS,
    DEVICES,
    DEPLOYMENTS,
    EVENTS,
    TRACES,
    ISSUES,
    INSTALLS,
    COREDUMPS,
    FILES,
)
