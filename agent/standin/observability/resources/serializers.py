"""Serializers: the JSON of each resource, which is the fields of its schema in their order.

A field that is not made here is the record's own, a time under its name without `_date` or `_at`.
"""

from collections.abc import Sequence
from typing import Any

from agent.standin.core.schema import MOMENT, Schema
from agent.standin.observability import file_storage, schemas, tables
from agent.standin.observability.project import Project, timestamp
from agent.standin.observability.resources import changes
from agent.standin.store import TableOf

JSONObject = dict[str, object]


_REFERRED: dict[int, tuple[TableOf[Any], Schema]] = {
    id(schemas.A_RELEASE): (tables.RELEASES, schemas.RELEASE_REF),
    id(schemas.A_DEVICE): (tables.DEVICES, schemas.DEVICE_REF),
    id(schemas.A_COHORT): (tables.COHORTS, schemas.COHORT_REF),
}
"""Where a record's key is looked up, and what is shown of what it names, by the field's schema."""


def shown(
    schema: Schema, record: object, scope: Project | None = None, **made: object
) -> JSONObject:
    """Return the fields of a schema, those that are not `made` from the record.

    Another resource of `scope` that the record names is null where it is not known.
    """
    found: JSONObject = {}
    for name, field in schema["properties"].items():
        if name in made:
            found[name] = made[name]
        elif field is MOMENT or field is schemas.MOMENT_OR_NULL:
            found[name] = timestamp(getattr(record, name.removesuffix("_date").removesuffix("_at")))
        elif scope is not None and (referred := _REFERRED.get(id(field))):
            table, ref = referred
            other = scope.table(table).get(getattr(record, name) or "")
            found[name] = None if other is None else shown(ref, other)
        else:
            found[name] = getattr(record, name)
    return found


def project(scope: Project) -> JSONObject:
    """Return a project as JSON, with its key: every member can see it (clause O1.3)."""
    fields = shown(
        schemas.PROJECT,
        scope.record,
        platform="mcu",
        os="zephyr",
        api_key=scope.record.project_key,
        count_devices=len(scope.table(tables.DEVICES)),
    )
    # Released tools read these before an upload.
    return {**fields, "max_ota_upload_size": 268_435_456, "qcomm_enabled": False}


def release(
    scope: Project, record: tables.Release, artifacts: Sequence[tables.Artifact] | None = None
) -> JSONObject:
    """Return a release as JSON with its artifacts; their signed URLs are valid for six hours.

    `artifacts` are those of the release in another order.
    """
    devices = scope.table(tables.DEVICES).values()
    return shown(
        schemas.RELEASE,
        record,
        count_devices=sum(one.last_seen_release == record.version for one in devices),
        artifacts=[_artifact(scope, one) for one in artifacts or record.artifacts],
    )


def _artifact(scope: Project, record: tables.Artifact) -> JSONObject:
    url = file_storage.signed_url(scope.cloud, record.blob, record.filename)
    made = timestamp(record.created)
    return {**shown(schemas.ARTIFACT, record, url=url, updated_date=made), **record.more}


def cohort(scope: Project, record: tables.Cohort) -> JSONObject:
    """Return a cohort as JSON."""
    slug = record.slug
    deployments = [one for one in scope.table(tables.DEPLOYMENTS).values() if one.cohort == slug]
    last = max(deployments, key=lambda one: one.deployed, default=None)
    return shown(
        schemas.COHORT,
        record,
        count_devices=sum(one.cohort == slug for one in scope.table(tables.DEVICES).values()),
        last_deployment=deployment(scope, last) if last else None,
    )


def deployment(scope: Project, record: tables.Deployment) -> JSONObject:
    """Return a deployment as JSON; of a delta release also the version that it starts from."""
    step = {"delta_from": record.delta_from} if record.delta_from else {}
    of = changes.release_of(scope, record.delta_from, record.release)
    release = None if of is None else shown(schemas.RELEASE_REF, of)
    return {**step, **shown(schemas.DEPLOYMENT, record, scope, release=release)}


def event(scope: Project, record: tables.Event) -> JSONObject:
    """Return an event as JSON."""
    build_id = {"build_id": record.build_id} if record.build_id else {}
    return {**shown(schemas.EVENT, record, scope), **build_id}


def trace(scope: Project, record: tables.Trace) -> JSONObject:
    """Return a trace as JSON."""
    of = scope.table(tables.ISSUES)[str(record.issue)]
    issue = {"id": of.id, "title": of.title}
    return shown(schemas.TRACE, record, scope, source_type=record.source, issue=issue)


def issue(scope: Project, record: tables.Issue) -> JSONObject:
    """Return an issue as JSON."""
    devices, traces = len(record.devices), record.traces
    return shown(schemas.ISSUE, record, scope, device_count=devices, trace_count=traces)
