"""Serializers: the JSON of each resource, which is the fields of its schema in their order.

A field that is not made here is the record's own, a time under its name without `_date` or `_at`.
"""

from collections.abc import Sequence

from agent.standin.core.schema import MOMENT, Schema
from agent.standin.observability import file_storage, schemas, tables
from agent.standin.observability.project import Project, timestamp
from agent.standin.observability.resources import changes
from agent.standin.state import Organization

JSONObject = dict[str, object]


def shown(schema: Schema, record: object, **made: object) -> JSONObject:
    """Return the fields of a schema, those that are not `made` from the record."""
    found: JSONObject = {}
    for name, field in schema["properties"].items():
        if name in made:
            found[name] = made[name]
        elif field is MOMENT or field is schemas.MOMENT_OR_NULL:
            found[name] = timestamp(getattr(record, name.removesuffix("_date").removesuffix("_at")))
        else:
            found[name] = getattr(record, name)
    return found


def organization(record: Organization) -> JSONObject:
    """Return an organization as JSON."""
    return shown(schemas.ORGANIZATION, record)


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


def release_ref(scope: Project, version: str | None) -> JSONObject | None:
    """Return a reference to a release as JSON, None if it is unknown."""
    return _ref(scope.table(tables.RELEASES).get(version) if version else None)


def _ref(release: tables.Release | None) -> JSONObject | None:
    return None if release is None else shown(schemas.RELEASE_REF, release)


def device_ref(scope: Project, serial: str) -> JSONObject | None:
    """Return a reference to a device as JSON, None if it is unknown."""
    record = scope.table(tables.DEVICES).get(serial)
    return None if record is None else shown(schemas.DEVICE_REF, record)


def cohort_ref(scope: Project, slug: str) -> JSONObject | None:
    """Return a reference to a cohort as JSON, None if it is unknown."""
    record = scope.cohort(slug)
    return None if record is None else shown(schemas.COHORT_REF, record)


def release(
    scope: Project,
    record: tables.Release,
    base_url: str = "",
    artifacts: Sequence[tables.Artifact] | None = None,
) -> JSONObject:
    """Return a release as JSON with its artifacts; their signed URLs are valid for six hours.

    `artifacts` are those of the release in another order.
    """
    devices = scope.table(tables.DEVICES).values()
    return shown(
        schemas.RELEASE,
        record,
        count_devices=sum(one.last_seen_release == record.version for one in devices),
        artifacts=[_artifact(scope, one, base_url) for one in artifacts or record.artifacts],
    )


def _artifact(scope: Project, record: tables.Artifact, base_url: str) -> JSONObject:
    url = file_storage.signed_url(scope.cloud, record.blob, record.filename, base_url)
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


def device(scope: Project, record: tables.ObservedDevice) -> JSONObject:
    """Return a device as JSON."""
    release = release_ref(scope, record.last_seen_release)
    cohort = cohort_ref(scope, record.cohort)
    return shown(schemas.DEVICE, record, cohort=cohort, last_seen_release=release)


def deployment(scope: Project, record: tables.Deployment) -> JSONObject:
    """Return a deployment as JSON; of a delta release also the version that it starts from."""
    step = {"delta_from": record.delta_from} if record.delta_from else {}
    release = _ref(changes.release_of(scope, record.delta_from, record.release))
    cohort = cohort_ref(scope, record.cohort)
    return {**step, **shown(schemas.DEPLOYMENT, record, release=release, cohort=cohort)}


def event(scope: Project, record: tables.Event) -> JSONObject:
    """Return an event as JSON."""
    build_id = {"build_id": record.build_id} if record.build_id else {}
    return {**shown(schemas.EVENT, record, **_origin(scope, record)), **build_id}


def trace(scope: Project, record: tables.Trace) -> JSONObject:
    """Return a trace as JSON."""
    of = scope.table(tables.ISSUES)[str(record.issue)]
    issue = {"id": of.id, "title": of.title}
    origin = _origin(scope, record)
    return shown(schemas.TRACE, record, source_type=record.source, issue=issue, **origin)


def _origin(scope: Project, record: tables.FromDevice) -> JSONObject:
    """Return the device and the release that a record is of."""
    release = release_ref(scope, record.release)
    return {"device": device_ref(scope, record.device), "release": release}


def issue(scope: Project, record: tables.Issue) -> JSONObject:
    """Return an issue as JSON."""
    return shown(
        schemas.ISSUE,
        record,
        device_count=len(record.devices),
        trace_count=record.traces,
        first_release=release_ref(scope, record.first_release),
        last_release=release_ref(scope, record.last_release),
    )


def install(scope: Project, record: tables.Install) -> JSONObject:
    """Return an install as JSON."""
    return shown(
        schemas.INSTALL,
        record,
        device=device_ref(scope, record.device),
        release_from=release_ref(scope, record.release_from),
        release_to=release_ref(scope, record.release_to),
    )


def coredump(scope: Project, record: tables.StoredCoredump) -> JSONObject:
    """Return a core dump as JSON, without its bytes."""
    return shown(schemas.COREDUMP, record, device=device_ref(scope, record.device))


def file(_scope: Project, record: tables.StoredFile) -> JSONObject:
    """Return a file that was uploaded as JSON, without its bytes."""
    return shown(schemas.FILE, record)
