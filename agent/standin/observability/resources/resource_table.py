"""The resources of a project as one table: schema, filters, sort fields, changes.

A method without an entry has no route, and is refused with the `Allow` header (clause O3.1: not
every route exists for every resource).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from agent.standin.core.schema import Schema, body_schema
from agent.standin.observability import schemas, tables
from agent.standin.observability.operations import RequestContext
from agent.standin.observability.project import RELEASE_VERSION, SLUG, VERSION, Project
from agent.standin.observability.resources import changes, serializers
from agent.standin.observability.resources.lists import (
    MADE,
    FieldFilter,
    Listing,
    SortKey,
    filters,
    readers,
)
from agent.standin.store import TableOf


class _Record(Protocol):
    id: int


R = TypeVar("R", bound=_Record)

ID: Schema = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
_TEXT: Schema = {"type": "string", "maxLength": 1000}
_VERSION_PAIR: Schema = {"type": "array", "items": RELEASE_VERSION, "minItems": 2, "maxItems": 2}
_RELEASE_OR_DELTA: Schema = {"anyOf": [RELEASE_VERSION, _VERSION_PAIR]}
"""A version, or the two versions of a delta release."""
_PERCENT: Schema = {"type": "integer", "minimum": 0, "maximum": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind(Listing[R]):
    """One resource. `create` gets the checked request and returns the record."""

    table: TableOf[R]
    singular: str
    key: str = "id"
    """The name of its path parameter."""
    key_schema: Schema = field(default_factory=lambda: ID)
    schema: Schema
    serialize: Callable[[Project, R], dict[str, object]] | None = None
    """What shows a record, where the fields of `schema` alone do not say it."""
    order: Callable[[R], SortKey] = attrgetter("id")
    """Default sort key of a list, in descending order."""
    create: Callable[[RequestContext], R] | None = None
    create_body: Schema = field(default_factory=dict)
    created_status: int = 201
    change_body: Schema = field(default_factory=dict)
    """The fields that can be changed; none where there is no such operation."""
    before_change: Callable[[RequestContext, R], None] = lambda _context, _record: None
    """Called before they are set; what it raises refuses the change."""
    remove: Callable[[Project, R], None] | None = None
    require_removable: Callable[[Project, R], None] = lambda _project, _record: None
    """Called for each record before the first one is removed; what it raises keeps them all."""
    remove_many: bool = False

    @property
    def key_field(self) -> str:
        """The field of a record that is its key."""
        shown = self.schema["properties"]
        return self.key if self.key in shown else self.key.rpartition("_")[2]

    def to_json(self, project: Project, record: R) -> dict[str, object]:
        """Return a record as the service shows it."""
        if self.serialize is not None:
            return self.serialize(project, record)
        return serializers.shown(self.schema, record, project)

    @property
    def name(self) -> str:
        """Its segment of the path."""
        return self.table.name.rpartition("/")[2]


_RELEASE_FIELDS: dict[str, Schema] = {
    "revision": _TEXT,
    "notes": _TEXT,
    "extra_info": schemas.OPEN_OR_NULL,
    "must_pass_through": {"type": "boolean"},
}
_DEVICE_FIELDS: dict[str, Schema] = {
    "hardware_version": VERSION,
    "owner_ref": schemas.TEXT_OR_NULL,
    "nickname": _TEXT,
    "description": _TEXT,
    "cohort": SLUG,
    "release": schemas.nullable(VERSION),
    "server_side_developer_mode": {"type": "boolean"},
}
_DATES = {"created_date": "created", "updated_date": "updated"}

RELEASES = ResourceKind(
    table=tables.RELEASES,
    singular="Release",
    key="release_version",
    key_schema=RELEASE_VERSION,
    schema=schemas.RELEASE,
    serialize=serializers.release,
    filters=filters("since", **MADE, updated_date="updated"),
    sorts=readers("version", **_DATES),
    create=changes.create_release,
    create_body=body_schema(
        "version",
        version=RELEASE_VERSION,
        min_version={"anyOf": [RELEASE_VERSION, {"enum": [""]}]},
        **_RELEASE_FIELDS,
    ),
    change_body=body_schema(**_RELEASE_FIELDS),
    remove=lambda project, release: project.table(tables.RELEASES).delete(release.version),
    require_removable=changes.require_not_deployed,
    remove_many=True,
)
COHORTS = ResourceKind(
    table=tables.COHORTS,
    singular="Cohort",
    key="cohort_slug",
    key_schema=SLUG,
    schema=schemas.COHORT,
    serialize=serializers.cohort,
    filters=filters("since", **MADE, updated_date="updated"),
    sorts=readers("name", "slug", **_DATES),
    create=changes.create_cohort,
    create_body=body_schema("slug", slug=SLUG, name=_TEXT),
    created_status=200,  # clients of the real service wait for this one
    change_body=body_schema(name=_TEXT),
    remove=changes.remove_cohort,
    require_removable=changes.require_other_than_default,
)
DEVICES = ResourceKind(
    table=tables.DEVICES,
    singular="Device",
    key="device_serial",
    key_schema=SLUG,
    schema=schemas.DEVICE,
    filters={
        **filters("any", "device_serial", "cohort", "owner_ref", "hardware_version"),
        **filters("any", release="last_seen_release"),
        **filters("since", last_seen_since="last_seen", updated_date="updated", **MADE),
        **filters("until", last_seen_until="last_seen"),
    },
    sorts=readers("device_serial", "last_seen", **_DATES),
    create=changes.create_device,
    create_body=body_schema(
        "device_serial", "hardware_version", device_serial=SLUG, **_DEVICE_FIELDS
    ),
    before_change=changes.require_known,
    change_body=body_schema(**_DEVICE_FIELDS),
    # What it sent remains.
    remove=lambda project, one: project.table(tables.DEVICES).delete(one.device_serial),
    remove_many=True,
)
DEPLOYMENTS = ResourceKind(
    table=tables.DEPLOYMENTS,
    singular="Deployment",
    schema=schemas.DEPLOYMENT,
    serialize=serializers.deployment,
    filters={
        **filters("any", "cohort", "delta_from", "status"),
        "release": FieldFilter(lambda one: None if one.delta_from else one.release),
        "delta_to": FieldFilter(lambda one: one.release if one.delta_from else None),
        **filters(
            "since", deployed_date="deployed", created_date="deployed", first_seen="deployed"
        ),
    },
    sorts=readers(deployed_date="deployed", id="id"),
    create=changes.create_deployment,
    create_body=body_schema(
        "release",
        "cohort",
        type={"type": "string", "enum": ["normal", "staged_rollout"]},
        release=_RELEASE_OR_DELTA,
        cohort=SLUG,
        rollout_percent=_PERCENT,
        extra_info=schemas.OPEN_OR_NULL,
    ),
    before_change=changes.change_rollout,
    change_body=body_schema(rollout_percent=_PERCENT),
    remove=changes.abort_deployment,
)
EVENTS = ResourceKind(
    table=tables.EVENTS,
    singular="Event",
    schema=schemas.EVENT,
    serialize=serializers.event,
    filters={
        **filters("any", "device", "type", "release"),
        **filters("since", since="captured", **MADE),
        **filters("until", until="captured"),
    },
    sorts=readers(
        created_date="created", captured_date="captured", received_date="received", id="id"
    ),
)
TRACES = ResourceKind(
    table=tables.TRACES,
    singular="Trace",
    schema=schemas.TRACE,
    serialize=serializers.trace,
    filters={
        **filters("any", "device", "issue", "release", "source"),
        **filters("since", since="captured", **MADE),
        **filters("until", until="captured"),
    },
    sorts=readers(created_date="created", captured_date="captured", id="id"),
)
ISSUES = ResourceKind(
    table=tables.ISSUES,
    singular="Issue",
    schema=schemas.ISSUE,
    serialize=serializers.issue,
    filters={
        **filters("any", "status"),
        **filters("since", first_seen="first_seen", last_seen="last_seen", created_date="created"),
    },
    sorts={
        **readers("first_seen", "last_seen", trace_count="traces"),
        "device_count": lambda issue: len(issue.devices),
        **readers("id"),
    },
    order=attrgetter("last_seen"),
    change_body=body_schema(
        status={"type": "string", "enum": ["open", "closed", "resolved"]}, title=_TEXT
    ),
)
INSTALLS = ResourceKind(
    table=tables.INSTALLS,
    singular="Install",
    schema=schemas.INSTALL,
    filters={
        **filters("any", "device", "status"),
        **filters("since", began_at="began", created_date="began", first_seen="began"),
    },
    sorts=readers(began_at="began", id="id"),
)
COREDUMPS = ResourceKind(
    table=tables.COREDUMPS,
    singular="Coredump",
    schema=schemas.COREDUMP,
    filters={**filters("any", "device"), **filters("since", **MADE)},
    sorts=readers(created_date="created", id="id"),
)
FILES = ResourceKind(
    table=tables.FILES,
    singular="File",
    schema=schemas.FILE,
    filters={**filters("any", "kind", "name"), **filters("since", **MADE)},
    sorts=readers(created_date="created", name="name", id="id"),
)

RESOURCES: tuple[ResourceKind[Any], ...] = (
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
