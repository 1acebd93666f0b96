"""Serializers: the JSON of each resource from its record, in the form of `schemas`."""

from __future__ import annotations

from collections.abc import Sequence

from agent.standin.observability import file_storage, tables
from agent.standin.observability.project import Project, timestamp
from agent.standin.observability.resources import changes
from agent.standin.state import Organization

JSONObject = dict[str, object]


def organization(record: Organization) -> JSONObject:
    """Return an organization as JSON."""
    return {
        "id": record.id,
        "name": record.name,
        "slug": record.slug,
        "created_date": timestamp(record.created),
    }


def project(scope: Project) -> JSONObject:
    """Return a project as JSON, with its key: every member can see it (clause O1.3)."""
    record = scope.record
    return {
        "id": record.id,
        "name": record.name,
        "slug": record.slug,
        "platform": "mcu",
        "os": "zephyr",
        "api_key": record.project_key,
        "count_devices": len(scope.table(tables.DEVICES)),
        "created_date": timestamp(record.created),
        # Released tools read these before an upload.
        "max_ota_upload_size": 268_435_456,
        "qcomm_enabled": False,
    }


def release_ref(scope: Project, version: str | None) -> JSONObject | None:
    """Return a reference to a release as JSON, None if it is unknown."""
    return _ref(scope.table(tables.RELEASES).get(version) if version else None)


def _ref(release: tables.Release | None) -> JSONObject | None:
    if release is None:
        return None
    return {"id": release.id, "version": release.version, "revision": release.revision}


def device_ref(scope: Project, serial: str) -> JSONObject | None:
    """Return a reference to a device as JSON, None if it is unknown."""
    record = scope.table(tables.DEVICES).get(serial)
    if record is None:
        return None
    return {
        "id": record.id,
        "device_serial": record.device_serial,
        "hardware_version": record.hardware_version,
    }


def cohort_ref(scope: Project, slug: str) -> JSONObject | None:
    """Return a reference to a cohort as JSON, None if it is unknown."""
    record = scope.cohort(slug)
    return {"id": record.id, "name": record.name, "slug": record.slug} if record else None


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
    return {
        "id": record.id,
        "version": record.version,
        "min_version": record.min_version,
        "revision": record.revision,
        "notes": record.notes,
        "extra_info": record.extra_info,
        "must_pass_through": record.must_pass_through,
        "count_devices": sum(one.last_seen_release == record.version for one in devices),
        "artifacts": [_artifact(scope, one, base_url) for one in artifacts or record.artifacts],
        "created_date": timestamp(record.created),
        "updated_date": timestamp(record.updated),
    }


def _artifact(scope: Project, record: tables.Artifact, base_url: str) -> JSONObject:
    return {
        "id": record.id,
        "type": record.type,
        "hardware_version": record.hardware_version,
        "software_type": record.software_type,
        "build_id": record.build_id,
        "filename": record.filename,
        "md5": record.md5,
        "size": record.size,
        "url": file_storage.signed_url(scope.cloud, record.blob, record.filename, base_url),
        "created_date": timestamp(record.created),
        "updated_date": timestamp(record.created),
        **record.more,
    }


def cohort(scope: Project, record: tables.Cohort) -> JSONObject:
    """Return a cohort as JSON."""
    slug = record.slug
    deployments = [one for one in scope.table(tables.DEPLOYMENTS).values() if one.cohort == slug]
    last = max(deployments, key=lambda one: one.deployed, default=None)
    return {
        "id": record.id,
        "name": record.name,
        "slug": slug,
        "count_devices": sum(one.cohort == slug for one in scope.table(tables.DEVICES).values()),
        "last_deployment": deployment(scope, last) if last else None,
        "created_date": timestamp(record.created),
        "updated_date": timestamp(record.updated),
    }


def device(scope: Project, record: tables.Device) -> JSONObject:
    """Return a device as JSON."""
    return {
        "id": record.id,
        "device_serial": record.device_serial,
        "hardware_version": record.hardware_version,
        "owner_ref": record.owner_ref,
        "nickname": record.nickname,
        "description": record.description,
        "cohort": cohort_ref(scope, record.cohort),
        "last_seen": timestamp(record.last_seen),
        "last_seen_release": release_ref(scope, record.last_seen_release),
        "created_date": timestamp(record.created),
        "updated_date": timestamp(record.updated),
    }


def deployment(scope: Project, record: tables.Deployment) -> JSONObject:
    """Return a deployment as JSON; of a delta release also the version that it starts from."""
    step = {"delta_from": record.delta_from} if record.delta_from else {}
    return {
        **step,
        "id": record.id,
        "type": record.type,
        "status": record.status,
        "deployer": record.deployer,
        "rollout_percent": record.rollout_percent,
        "release": _ref(changes.release_of(scope, record.delta_from, record.release)),
        "cohort": cohort_ref(scope, record.cohort),
        "deployed_date": timestamp(record.deployed),
        "extra_info": record.extra_info,
    }


def event(scope: Project, record: tables.Event) -> JSONObject:
    """Return an event as JSON."""
    build_id = {"build_id": record.build_id} if record.build_id else {}
    return {
        "id": record.id,
        "type": record.type,
        "software_type": record.software_type,
        "software_version": record.software_version,
        "sdk_version": record.sdk_version,
        "event_info": record.event_info,
        "user_info": record.user_info,
        "device": device_ref(scope, record.device),
        "release": release_ref(scope, record.release),
        "created_date": timestamp(record.created),
        "captured_date": timestamp(record.captured),
        "received_date": timestamp(record.received),
        **build_id,
    }


def trace(scope: Project, record: tables.Trace) -> JSONObject:
    """Return a trace as JSON."""
    of = scope.table(tables.ISSUES)[str(record.issue)]
    return {
        "id": record.id,
        "reason": record.reason,
        "reason_code": record.reason_code,
        "source": record.source,
        "source_type": record.source,
        "software_type": record.software_type,
        "software_version": record.software_version,
        "trace_info": record.trace_info,
        "issue": {"id": of.id, "title": of.title},
        "device": device_ref(scope, record.device),
        "release": release_ref(scope, record.release),
        "captured_date": timestamp(record.captured),
        "created_date": timestamp(record.created),
    }


def issue(scope: Project, record: tables.Issue) -> JSONObject:
    """Return an issue as JSON."""
    return {
        "id": record.id,
        "status": record.status,
        "title": record.title,
        "signature": record.signature,
        "last_trace": record.last_trace,
        "device_count": len(record.devices),
        "trace_count": record.traces,
        "first_seen": timestamp(record.first_seen),
        "last_seen": timestamp(record.last_seen),
        "first_release": release_ref(scope, record.first_release),
        "last_release": release_ref(scope, record.last_release),
        "created_date": timestamp(record.created),
    }


def install(scope: Project, record: tables.Install) -> JSONObject:
    """Return an install as JSON."""
    return {
        "id": record.id,
        "status": record.status,
        "software_type": record.software_type,
        "device": device_ref(scope, record.device),
        "release_from": release_ref(scope, record.release_from),
        "release_to": release_ref(scope, record.release_to),
        "began_at": timestamp(record.began),
        "transitioned_at": timestamp(record.transitioned),
    }


def coredump(scope: Project, record: tables.StoredCoredump) -> JSONObject:
    """Return a core dump as JSON, without its bytes."""
    return {
        "id": record.id,
        "trace": record.trace,
        "size": record.size,
        "device": device_ref(scope, record.device),
        "created_date": timestamp(record.created),
    }


def file(_scope: Project, record: tables.StoredFile) -> JSONObject:
    """Return a file that was uploaded as JSON, without its bytes."""
    return {
        "id": record.id,
        "kind": record.kind,
        "name": record.name,
        "md5": record.md5,
        "size": record.size,
        "details": record.details,
        "created_date": timestamp(record.created),
    }
