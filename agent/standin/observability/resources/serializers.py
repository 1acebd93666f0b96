"""Serializers: the JSON of each resource from its record, in the form of `schemas`."""

from __future__ import annotations

from typing import Any

from agent.standin.observability.project import Project, Record, timestamp
from agent.standin.observability.resources import changes


def organization(record: Record) -> dict[str, Any]:
    """Return an organization as JSON."""
    return {
        "id": record["id"],
        "name": record["name"],
        "slug": record["slug"],
        "created_date": timestamp(record["created"]),
    }


def project(scope: Project) -> dict[str, Any]:
    """Return a project as JSON, with its key: every member can see it (clause O1.3)."""
    record = scope.record
    return {
        "id": record["id"],
        "name": record["name"],
        "slug": record["slug"],
        "platform": "mcu",
        "os": "zephyr",
        "api_key": record["project_key"],
        "count_devices": len(scope.table("devices")),
        "created_date": timestamp(record["created"]),
        # Released tools read these before an upload.
        "max_ota_upload_size": 268_435_456,
        "qcomm_enabled": False,
    }


def release_ref(scope: Project, version: str | None) -> dict[str, Any] | None:
    """Return a reference to a release as JSON, None if it is unknown."""
    return _ref(scope.table("releases").get(version) if version else None)


def _ref(release: Record | None) -> dict[str, Any] | None:
    if release is None:
        return None
    return {key: release[key] for key in ("id", "version", "revision")}


def device_ref(scope: Project, serial: str) -> dict[str, Any] | None:
    """Return a reference to a device as JSON, None if it is unknown."""
    record = scope.table("devices").get(serial)
    if record is None:
        return None
    return {key: record[key] for key in ("id", "device_serial", "hardware_version")}


def cohort_ref(scope: Project, slug: str) -> dict[str, Any] | None:
    """Return a reference to a cohort as JSON, None if it is unknown."""
    record = scope.cohort(slug)
    return {key: record[key] for key in ("id", "name", "slug")} if record else None


def release(scope: Project, record: Record, base_url: str) -> dict[str, Any]:
    """Return a release as JSON with its artifacts; their signed URLs are valid for six hours."""
    from agent.standin.observability.file_storage import signed_url

    version = record["version"]
    devices = scope.table("devices").values()
    names = ("id", "version", "min_version", "revision", "notes", "extra_info", "must_pass_through")
    return {
        **{key: record[key] for key in names},
        "count_devices": sum(one["last_seen_release"] == version for one in devices),
        "artifacts": [
            {
                **{key: one[key] for key in ("id", "type", "hardware_version", "software_type")},
                **{key: one[key] for key in ("build_id", "filename", "md5", "size")},
                "url": signed_url(scope.cloud, one["blob"], one["filename"], base_url),
                "created_date": timestamp(one["created"]),
                "updated_date": timestamp(one["created"]),
                **one.get("more", {}),
            }
            for one in record["artifacts"]
        ],
        "created_date": timestamp(record["created"]),
        "updated_date": timestamp(record["updated"]),
    }


def cohort(scope: Project, record: Record) -> dict[str, Any]:
    """Return a cohort as JSON."""
    slug = record["slug"]
    deployments = [one for one in scope.table("deployments").values() if one["cohort"] == slug]
    devices = scope.table("devices").values()
    last = max(deployments, key=lambda one: one["deployed"], default=None)
    return {
        **{key: record[key] for key in ("id", "name", "slug")},
        "count_devices": sum(one["cohort"] == slug for one in devices),
        "last_deployment": deployment(scope, last) if last else None,
        "created_date": timestamp(record["created"]),
        "updated_date": timestamp(record["updated"]),
    }


def device(scope: Project, record: Record) -> dict[str, Any]:
    """Return a device as JSON."""
    names = ("id", "device_serial", "hardware_version", "owner_ref", "nickname", "description")
    return {
        **{key: record[key] for key in names},
        "cohort": cohort_ref(scope, record["cohort"]),
        "last_seen": timestamp(record["last_seen"]),
        "last_seen_release": release_ref(scope, record["last_seen_release"]),
        "created_date": timestamp(record["created"]),
        "updated_date": timestamp(record["updated"]),
    }


def deployment(scope: Project, record: Record) -> dict[str, Any]:
    """Return a deployment as JSON; of a delta release also the version that it starts from."""
    step = {"delta_from": record["delta_from"]} if record["delta_from"] else {}
    return {
        **step,
        **{key: record[key] for key in ("id", "type", "status", "deployer", "rollout_percent")},
        "release": _ref(changes.release_of(scope, record)),
        "cohort": cohort_ref(scope, record["cohort"]),
        "deployed_date": timestamp(record["deployed"]),
        "extra_info": record["extra_info"],
    }


def event(scope: Project, record: Record) -> dict[str, Any]:
    """Return an event as JSON."""
    names = ("id", "type", "software_type", "software_version", "sdk_version", "event_info")
    shown = {
        **{key: record[key] for key in (*names, "user_info")},
        "device": device_ref(scope, record["device"]),
        "release": release_ref(scope, record["release"]),
        "created_date": timestamp(record["created"]),
        "captured_date": timestamp(record["captured"]),
        "received_date": timestamp(record["received"]),
    }
    if record["build_id"]:
        shown["build_id"] = record["build_id"]
    return shown


def trace(scope: Project, record: Record) -> dict[str, Any]:
    """Return a trace as JSON."""
    names = ("id", "reason", "reason_code", "source", "software_type", "software_version")
    issue_record = scope.table("issues").get(str(record["issue"]))
    return {
        **{key: record[key] for key in (*names, "trace_info")},
        "issue": {"id": issue_record["id"], "title": issue_record["title"]},
        "device": device_ref(scope, record["device"]),
        "release": release_ref(scope, record["release"]),
        "captured_date": timestamp(record["captured"]),
        "created_date": timestamp(record["created"]),
    }


def issue(scope: Project, record: Record) -> dict[str, Any]:
    """Return an issue as JSON."""
    return {
        **{key: record[key] for key in ("id", "status", "title", "signature", "last_trace")},
        "device_count": len(record["devices"]),
        "trace_count": record["traces"],
        "first_seen": timestamp(record["first_seen"]),
        "last_seen": timestamp(record["last_seen"]),
        "first_release": release_ref(scope, record["first_release"]),
        "last_release": release_ref(scope, record["last_release"]),
        "created_date": timestamp(record["created"]),
    }


def install(scope: Project, record: Record) -> dict[str, Any]:
    """Return an install as JSON."""
    return {
        **{key: record[key] for key in ("id", "status", "software_type")},
        "device": device_ref(scope, record["device"]),
        "release_from": release_ref(scope, record["from"]),
        "release_to": release_ref(scope, record["to"]),
        "began_at": timestamp(record["began"]),
        "transitioned_at": timestamp(record["transitioned"]),
    }


def coredump(scope: Project, record: Record) -> dict[str, Any]:
    """Return a core dump as JSON, without its bytes."""
    return {
        **{key: record[key] for key in ("id", "trace", "size")},
        "device": device_ref(scope, record["device"]),
        "created_date": timestamp(record["created"]),
    }


def file(_scope: Project, record: Record) -> dict[str, Any]:
    """Return a file that was uploaded as JSON, without its bytes."""
    return {
        **{key: record[key] for key in ("id", "kind", "name", "md5", "size", "details")},
        "created_date": timestamp(record["created"]),
    }
