"""The resources of a project as one table: what each shows, filters, sorts, takes and refuses.

A method that a resource has no entry for has no route, and is refused with the `Allow` header
(clause O3.1: not every route exists for every resource).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.standin.observability import changes, shapes, views
from agent.standin.observability.conventions import Filter
from agent.standin.observability.shapes import body
from agent.standin.observability.slugs import RELEASE_VERSION, SLUG, VERSION

if TYPE_CHECKING:
    from agent.standin.observability.exchange import Exchange
    from agent.standin.observability.project import Project, Record
    from agent.standin.schema import Schema

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
    key: str
    """The name of its path parameter."""
    key_schema: Schema
    schema: Schema
    show: Show
    filters: Mapping[str, Filter] = field(default_factory=dict)
    sorts: Mapping[str, Read] = field(default_factory=dict)
    order: Read
    """What a list is sorted by when nobody says; the newest first."""
    create: Callable[[Exchange], Record] | None = None
    create_body: Schema = field(default_factory=dict)
    change: Callable[[Exchange, Record], Record] | None = None
    change_body: Schema = field(default_factory=dict)
    remove: Callable[[Project, Record], None] | None = None
    remove_many: bool = False


def reading(name: str) -> Read:
    """Return what reads a field of a record."""
    return lambda record: record[name]


def _any(name: str) -> Filter:
    return Filter(reading(name))


def _each(*names: str) -> dict[str, Filter]:
    """Return a filter for each field that is filtered under its own name."""
    return {name: _any(name) for name in names}


def _by(*names: str) -> dict[str, Read]:
    """Return what sorts by each field under its own name."""
    return {name: reading(name) for name in names}


def _since(name: str) -> Filter:
    return Filter(reading(name), "since", "At or after this instant.")


def _until(name: str) -> Filter:
    return Filter(reading(name), "until", "At or before this instant.")


_OF_A_RELEASE: dict[str, Schema] = {
    "revision": _TEXT,
    "notes": _TEXT,
    "extra_info": shapes.OPEN_OR_NULL,
    "must_pass_through": {"type": "boolean"},
}
_OF_A_DEVICE: dict[str, Schema] = {
    "hardware_version": VERSION,
    "owner_ref": shapes.TEXT_OR_NULL,
    "nickname": _TEXT,
    "description": _TEXT,
    "cohort": SLUG,
}
_DATES = {"created_date": reading("created"), "updated_date": reading("updated")}
_UPDATED = {"created_date": _since("created"), "updated_date": _since("updated")}

RELEASES = Resource(
    name="releases",
    singular="Release",
    key="release_version",
    key_schema=RELEASE_VERSION,
    schema=shapes.RELEASE,
    show=lambda scope, record: views.release(scope, record, ""),
    filters=_UPDATED,
    sorts={**_by("version"), **_DATES},
    order=reading("id"),
    create=changes.create_release,
    create_body=body(
        "version",
        version=RELEASE_VERSION,
        min_version={"anyOf": [RELEASE_VERSION, {"enum": [""]}]},
        **_OF_A_RELEASE,
    ),
    change=changes.change_release,
    change_body=body(**_OF_A_RELEASE),
    remove=changes.remove_release,
    remove_many=True,
)
COHORTS = Resource(
    name="cohorts",
    singular="Cohort",
    key="cohort_slug",
    key_schema=SLUG,
    schema=shapes.COHORT,
    show=views.cohort,
    filters=_UPDATED,
    sorts={**_by("name", "slug"), **_DATES},
    order=reading("id"),
    create=changes.create_cohort,
    create_body=body("slug", slug=SLUG, name=_TEXT),
    change=changes.change_cohort,
    change_body=body(name=_TEXT),
    remove=changes.remove_cohort,
)
DEVICES = Resource(
    name="devices",
    singular="Device",
    key="device_serial",
    key_schema=SLUG,
    schema=shapes.DEVICE,
    show=views.device,
    filters={
        **_each("device_serial", "cohort"),
        "release": _any("last_seen_release"),
        **_each("owner_ref", "hardware_version"),
        "last_seen_since": _since("last_seen"),
        "last_seen_until": _until("last_seen"),
        **_UPDATED,
    },
    sorts={
        **_by("device_serial", "last_seen"),
        **_DATES,
    },
    order=reading("id"),
    create=changes.create_device,
    create_body=body("device_serial", "hardware_version", device_serial=SLUG, **_OF_A_DEVICE),
    change=changes.change_device,
    change_body=body(**_OF_A_DEVICE),
    remove=changes.remove_device,
    remove_many=True,
)
DEPLOYMENTS = Resource(
    name="deployments",
    singular="Deployment",
    key="id",
    key_schema=ID,
    schema=shapes.DEPLOYMENT,
    show=views.deployment,
    filters={
        "cohort": _any("cohort"),
        "release": Filter(lambda record: None if record["delta_from"] else record["release"]),
        "delta_from": _any("delta_from"),
        "delta_to": Filter(lambda record: record["release"] if record["delta_from"] else None),
        "status": _any("status"),
        "deployed_date": _since("deployed"),
    },
    sorts={"deployed_date": reading("deployed"), "id": reading("id")},
    order=reading("id"),
    create=changes.create_deployment,
    create_body=body(
        "release",
        "cohort",
        type={"type": "string", "enum": ["normal", "staged_rollout"]},
        release=_RELEASE_OR_STEP,
        cohort=SLUG,
        rollout_percent=_PERCENT,
        extra_info=shapes.OPEN_OR_NULL,
    ),
    change=changes.change_deployment,
    change_body=body(rollout_percent=_PERCENT),
    remove=changes.abort_deployment,
)
EVENTS = Resource(
    name="events",
    singular="Event",
    key="id",
    key_schema=ID,
    schema=shapes.EVENT,
    show=views.event,
    filters={
        **_each("device", "type", "release"),
        "since": _since("captured"),
        "until": _until("captured"),
        "created_date": _since("created"),
    },
    sorts={
        "created_date": reading("created"),
        "captured_date": reading("captured"),
        "received_date": reading("received"),
        "id": reading("id"),
    },
    order=reading("id"),
)
TRACES = Resource(
    name="traces",
    singular="Trace",
    key="id",
    key_schema=ID,
    schema=shapes.TRACE,
    show=views.trace,
    filters={
        **_each("device", "issue", "release", "source"),
        "since": _since("captured"),
        "until": _until("captured"),
        "created_date": _since("created"),
    },
    sorts={
        "created_date": reading("created"),
        "captured_date": reading("captured"),
        "id": reading("id"),
    },
    order=reading("id"),
)
ISSUES = Resource(
    name="issues",
    singular="Issue",
    key="id",
    key_schema=ID,
    schema=shapes.ISSUE,
    show=views.issue,
    filters={
        "status": _any("status"),
        "first_seen": _since("first_seen"),
        "last_seen": _since("last_seen"),
        "created_date": _since("created"),
    },
    sorts={
        **_by("first_seen", "last_seen"),
        "trace_count": reading("traces"),
        "device_count": lambda record: len(record["devices"]),
        "id": reading("id"),
    },
    order=reading("last_seen"),
    change=changes.change_issue,
    change_body=body(
        status={"type": "string", "enum": ["open", "closed", "resolved"]}, title=_TEXT
    ),
)
INSTALLS = Resource(
    name="installs",
    singular="Install",
    key="id",
    key_schema=ID,
    schema=shapes.INSTALL,
    show=views.install,
    filters={
        **_each("device", "status"),
        "began_at": _since("began"),
    },
    sorts={"began_at": reading("began"), "id": reading("id")},
    order=reading("id"),
)
COREDUMPS = Resource(
    name="coredumps",
    singular="Coredump",
    key="id",
    key_schema=ID,
    schema=shapes.COREDUMP,
    show=views.coredump,
    filters={"device": _any("device"), "created_date": _since("created")},
    sorts={"created_date": reading("created"), "id": reading("id")},
    order=reading("id"),
)
FILES = Resource(
    name="files",
    singular="File",
    key="id",
    key_schema=ID,
    schema=shapes.FILE,
    show=views.file,
    filters={"kind": _any("kind"), "name": _any("name"), "created_date": _since("created")},
    sorts={"created_date": reading("created"), "name": reading("name"), "id": reading("id")},
    order=reading("id"),
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
