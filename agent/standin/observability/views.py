"""Each resource as it is shown: what a record becomes in an answer, beside its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.standin.observability.project import timestamp

if TYPE_CHECKING:
    from agent.standin.observability.project import Project, Record
    from agent.standin.schema import Schema

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "integer"}
DATE: Schema = {"type": "string", "format": "date-time"}
DATE_OR_NULL: Schema = {"anyOf": [DATE, {"type": "null"}]}
OPEN: Schema = {"type": "object"}
OPEN_OR_NULL: Schema = {"type": ["object", "null"]}


def shape(**fields: Schema) -> Schema:
    """Return the schema of an object that always has these fields."""
    return {"type": "object", "required": list(fields), "properties": fields}


def nullable(schema: Schema) -> Schema:
    """Return a schema that null fits, too."""
    return {"anyOf": [schema, {"type": "null"}]}


RELEASE_REF = shape(id=NUMBER, version=TEXT, revision=TEXT)
DEVICE_REF = shape(id=NUMBER, device_serial=TEXT, hardware_version=TEXT)
COHORT_REF = shape(id=NUMBER, name=TEXT, slug=TEXT)

ORGANIZATION = shape(id=TEXT, name=TEXT, slug=TEXT, created_date=DATE_OR_NULL)
PROJECT = shape(
    id=TEXT,
    name=TEXT,
    slug=TEXT,
    platform=TEXT,
    os=TEXT,
    api_key=TEXT,
    count_devices=NUMBER,
    created_date=DATE_OR_NULL,
)
ARTIFACT = shape(
    id=NUMBER,
    type={"type": "string", "enum": ["firmware", "symbols"]},
    hardware_version=TEXT_OR_NULL,
    software_type=TEXT,
    build_id=TEXT_OR_NULL,
    filename=TEXT,
    url=TEXT,
    md5=TEXT,
    size={"type": "integer"},
    created_date=DATE,
    updated_date=DATE,
)
RELEASE = shape(
    id=NUMBER,
    version=TEXT,
    min_version=TEXT,
    revision=TEXT,
    notes=TEXT,
    extra_info=OPEN_OR_NULL,
    must_pass_through={"type": "boolean"},
    count_devices=NUMBER,
    artifacts={"type": "array", "items": ARTIFACT},
    created_date=DATE,
    updated_date=DATE,
)
COHORT = shape(
    id=NUMBER,
    name=TEXT,
    slug=TEXT,
    count_devices=NUMBER,
    last_deployment=OPEN_OR_NULL,
    created_date=DATE,
    updated_date=DATE,
)
DEVICE = shape(
    id=NUMBER,
    device_serial=TEXT,
    hardware_version=TEXT,
    owner_ref=TEXT_OR_NULL,
    nickname=TEXT,
    description=TEXT,
    cohort=nullable(COHORT_REF),
    last_seen=DATE_OR_NULL,
    last_seen_release=nullable(RELEASE_REF),
    created_date=DATE,
    updated_date=DATE,
)
DEPLOYMENT = shape(
    id=NUMBER,
    type=TEXT,
    status=TEXT,
    release=nullable(RELEASE_REF),
    cohort=nullable(COHORT_REF),
    deployer=OPEN_OR_NULL,
    rollout_percent=NUMBER,
    deployed_date=DATE,
    extra_info=OPEN_OR_NULL,
)
EVENT = shape(
    id=NUMBER,
    type=TEXT,
    device=nullable(DEVICE_REF),
    release=nullable(RELEASE_REF),
    software_type=TEXT,
    software_version=TEXT,
    sdk_version=TEXT_OR_NULL,
    event_info=OPEN,
    user_info=OPEN_OR_NULL,
    created_date=DATE,
    captured_date=DATE,
    received_date=DATE,
)
TRACE = shape(
    id=NUMBER,
    reason=TEXT,
    reason_code={"type": ["integer", "null"]},
    source={"type": "string", "enum": ["event", "coredump"]},
    issue=shape(id=NUMBER, title=TEXT),
    device=nullable(DEVICE_REF),
    release=nullable(RELEASE_REF),
    software_type=TEXT,
    software_version=TEXT,
    trace_info=OPEN,
    captured_date=DATE,
    created_date=DATE,
)
ISSUE = shape(
    id=NUMBER,
    status={"type": "string", "enum": ["open", "closed", "resolved"]},
    title=TEXT,
    signature=TEXT,
    device_count=NUMBER,
    trace_count=NUMBER,
    first_seen=DATE,
    last_seen=DATE,
    first_release=nullable(RELEASE_REF),
    last_release=nullable(RELEASE_REF),
    last_trace=NUMBER,
    created_date=DATE,
)
INSTALL = shape(
    id=NUMBER,
    status=TEXT,
    device=nullable(DEVICE_REF),
    release_from=nullable(RELEASE_REF),
    release_to=nullable(RELEASE_REF),
    software_type=TEXT,
    began_at=DATE,
    transitioned_at=DATE,
)
COREDUMP = shape(
    id=NUMBER, trace=NUMBER, device=nullable(DEVICE_REF), size=NUMBER, created_date=DATE
)
FILE = shape(
    id=NUMBER,
    kind=TEXT,
    name=TEXT,
    md5=TEXT,
    size=NUMBER,
    details=OPEN,
    created_date=DATE,
)


def organization(record: Record) -> dict[str, Any]:
    """Show an organization."""
    return {
        "id": record["id"],
        "name": record["name"],
        "slug": record["slug"],
        "created_date": record.get("created_date"),
    }


def project(scope: Project) -> dict[str, Any]:
    """Show a project, its key included: every member can see it (clause O1.3)."""
    record = scope.record
    return {
        "id": record["id"],
        "name": record["name"],
        "slug": record["slug"],
        "platform": "mcu",
        "os": "zephyr",
        "api_key": record["project_key"],
        "count_devices": len(scope.table("devices")),
        "created_date": None,
        # What released tools look at before an upload.
        "max_ota_upload_size": 268_435_456,
        "qcomm_enabled": False,
    }


def release_ref(scope: Project, version: str | None) -> dict[str, Any] | None:
    """Show which release it is."""
    record = scope.table("releases").get(version) if version else None
    if record is None:
        return None
    return {key: record[key] for key in ("id", "version", "revision")}


def device_ref(scope: Project, serial: str) -> dict[str, Any] | None:
    """Show which device it is."""
    record = scope.table("devices").get(serial)
    if record is None:
        return None
    return {key: record[key] for key in ("id", "device_serial", "hardware_version")}


def cohort_ref(scope: Project, slug: str) -> dict[str, Any] | None:
    """Show which cohort it is."""
    record = scope.cohort(slug)
    return {key: record[key] for key in ("id", "name", "slug")} if record else None


def release(scope: Project, record: Record, base_url: str) -> dict[str, Any]:
    """Show a release with its artifacts; their URLs are signed and live six hours."""
    from agent.standin.observability.files import signed_url

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
            }
            for one in record["artifacts"]
        ],
        "created_date": timestamp(record["created"]),
        "updated_date": timestamp(record["updated"]),
    }


def cohort(scope: Project, record: Record) -> dict[str, Any]:
    """Show a cohort."""
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
    """Show a device."""
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
    """Show a deployment."""
    return {
        **{key: record[key] for key in ("id", "type", "status", "deployer", "rollout_percent")},
        "release": release_ref(scope, record["release"]),
        "cohort": cohort_ref(scope, record["cohort"]),
        "deployed_date": timestamp(record["deployed"]),
        "extra_info": record["extra_info"],
    }


def event(scope: Project, record: Record) -> dict[str, Any]:
    """Show an event."""
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
    """Show a trace."""
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
    """Show an issue."""
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
    """Show an install."""
    return {
        **{key: record[key] for key in ("id", "status", "software_type")},
        "device": device_ref(scope, record["device"]),
        "release_from": release_ref(scope, record["from"]),
        "release_to": release_ref(scope, record["to"]),
        "began_at": timestamp(record["began"]),
        "transitioned_at": timestamp(record["transitioned"]),
    }


def coredump(scope: Project, record: Record) -> dict[str, Any]:
    """Show a core dump, without its bytes."""
    return {
        **{key: record[key] for key in ("id", "trace", "size")},
        "device": device_ref(scope, record["device"]),
        "created_date": timestamp(record["created"]),
    }


def file(_scope: Project, record: Record) -> dict[str, Any]:
    """Show a file that was uploaded, without its bytes."""
    return {
        **{key: record[key] for key in ("id", "kind", "name", "md5", "size", "details")},
        "created_date": timestamp(record["created"]),
    }
