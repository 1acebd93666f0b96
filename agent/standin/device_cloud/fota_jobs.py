"""FOTA jobs: created by users, each with one execution per device."""

import uuid
from collections import Counter

import msgspec
from starlette.responses import Response

from agent.standin.clock import iso
from agent.standin.core.operation import in_query
from agent.standin.core.responses import JSON
from agent.standin.core.schema import MOMENT, TEXT, Schema, object_schema, texts
from agent.standin.device_cloud import bundles, executions
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import DeviceCloudRefused, not_found
from agent.standin.device_cloud.resource import Resource, accepted, answer_one, told, with_meta
from agent.standin.device_cloud.shapes import TEXTS, list_of, of, resource
from agent.standin.device_cloud.tables import JOBS, Job, JobFirmware, JobTarget
from agent.standin.state import Cloud

_COUNTERS = {
    "QUEUED": "queued",
    "IN_PROGRESS": "inProgress",
    "DOWNLOADING": "downloading",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "REJECTED": "rejected",
    "TIMED_OUT": "timedOut",
    "CANCELLED": "cancelled",
}


_IDS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": 100,
    "items": {"type": "string", "minLength": 1},
}
_TARGETS = ("deviceIds", "tags", "deviceIdentifiers")
JOB: Schema = {
    "type": "object",
    "required": ["bundleId"],
    "oneOf": [{"required": [name]} for name in _TARGETS],
    "properties": {
        "bundleId": {"type": "string"},
        **dict.fromkeys(_TARGETS, _IDS),
        "name": {"type": "string", "maxLength": 64},
        "description": {"type": "string", "maxLength": 1024},
        # A released tool sends the text.
        "autoApply": {
            "anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["true", "false"]}]
        },
    },
}


async def _create(context: Context) -> Response:
    cloud = context.cloud
    row = _job(context)
    if row.status == "IN_PROGRESS":
        _start(cloud, row)
    else:
        _store(cloud, row)
    return JSON({"jobId": row.id}, 201)


async def _listed(context: Context) -> Response:
    rows = context.owned(JOBS).values()
    page = context.page(descending=True)
    return page.answer(rows, lambda row: to_resource(context.cloud, row))


async def _fetch(context: Context) -> Response:
    return answer_one(to_resource(context.cloud, _find(context)))


async def _apply(context: Context) -> Response:
    row = _job_to_change(context)
    if row.status != "CREATED":
        raise DeviceCloudRefused(409, "the job was applied before")
    _start(context.cloud, row)
    return accepted()


async def _cancel(context: Context) -> Response:
    row = _job_to_change(context)
    # Every execution may have ended: the row does not tell that.
    if to_resource(context.cloud, row)["status"] not in {"CREATED", "IN_PROGRESS"}:
        raise DeviceCloudRefused(409, "the job has ended")
    reason = context.query.get("reason", "")[:1024]
    row.status, row.status_detail = "CANCELLED", reason
    _store(context.cloud, row)
    executions.cancel_job(context.cloud, row.id, reason)
    return accepted()


async def _delete(context: Context) -> Response:
    row = _job_to_change(context)
    executions.delete_job(context.cloud, row.id)
    context.cloud.table(JOBS).delete(row.id)
    return accepted()


def to_resource(cloud: Cloud, row: Job) -> Resource:
    """Return the job resource; it is complete once every execution has ended."""
    rows = executions.of_job(cloud, row.id)
    counts = Counter(execution.status for execution in rows)
    ended = sum(counts[name] for name in executions.FINAL)
    status = row.status
    if status == "IN_PROGRESS" and rows and ended == len(rows):
        status = "COMPLETED"
    changed = max([row.updated_at, *(e.updated_at for e in rows)])
    resource = {
        "jobId": row.id,
        "status": status,
        **told(
            {"name": row.name, "description": row.description, "statusDetail": row.status_detail}
        ),
        "target": row.target,
        "firmware": {**msgspec.to_builtins(row.firmware), "uris": row.path.split(" ")},
        "executionStats": {
            "executions": len(rows),
            "devices": len(rows),
            **{key: counts[name] for name, key in _COUNTERS.items()},
            "removed": 0,
            "completedExecutions": ended,
        },
        "createdAt": iso(row.created_at),
        "lastUpdatedAt": iso(changed),
    }
    if status in {"COMPLETED", "CANCELLED"}:
        resource["completedAt"] = iso(changed)
    return with_meta(resource, iso(row.created_at), iso(changed))


def _job(context: Context) -> Job:
    """Return a new job from the body of CreateFOTAJob."""
    cloud, body = context.cloud, context.body
    bundle = bundles.find(context, body["bundleId"])
    ids = body.get("deviceIds", body.get("deviceIdentifiers", []))
    applied = body.get("autoApply", True) not in {False, "false"}
    now = cloud.clock.time()
    return Job(
        id=str(uuid.uuid4()),
        team=context.team,
        name=body.get("name", ""),
        description=body.get("description", ""),
        status="IN_PROGRESS" if applied else "CREATED",
        status_detail="",
        target=JobTarget(
            device_ids=list(dict.fromkeys(ids)), tags=list(dict.fromkeys(body.get("tags", [])))
        ),
        firmware=JobFirmware(
            bundle_id=bundle.id,
            host=cloud.urls["downloads"],
            file_size=bundle.size,
            firmware_type=bundle.type,
            version=bundle.version,
        ),
        path=" ".join(bundle.paths),
        created_at=now,
        updated_at=now,
    )


def _start(cloud: Cloud, row: Job) -> None:
    """Create an execution for each target. Raises 404 for an unknown device; nothing is made."""
    devices, wanted = registry(cloud), set(row.target.tags)
    if wanted:
        records = [r for r in devices.walk(row.team) if not wanted.isdisjoint(r.fields.tags)]
    else:
        records = [devices.get(row.team, device_id) for device_id in row.target.device_ids]
    # One device may be named twice, in upper and in lower case.
    for device_id in dict.fromkeys(record.fields.id for record in records):
        executions.create(cloud, row, device_id)
    row.status = "IN_PROGRESS"
    _store(cloud, row)


def _find(context: Context) -> Job:
    return context.own(JOBS, context.path["job_id"], not_found("no such job"))


def _job_to_change(context: Context) -> Job:
    row = _find(context)
    context.check_if_match(to_resource(context.cloud, row).version)
    return row


def _store(cloud: Cloud, row: Job) -> None:
    row.updated_at = cloud.clock.time()
    cloud.table(JOBS).put(row.id, row)


_ONE = "/v1/fota-jobs/{job_id}"
_SHOWN = resource(
    *("name", "description", "statusDetail", "completedAt"),
    **texts("jobId", "name", "description", "status", "statusDetail"),
    target=of(JobTarget),
    firmware=object_schema(**of(JobFirmware)["properties"], uris=TEXTS),
    executionStats={"type": "object", "additionalProperties": {"type": "integer"}},
    createdAt=MOMENT,
    lastUpdatedAt=MOMENT,
    completedAt=MOMENT,
)
OPERATIONS = (
    declare(
        "POST /v1/fota-jobs", "CreateFOTAJob", "Update devices.", _create,
        tag="FOTA", body=JOB, answers={201: object_schema(jobId=TEXT)},
    ),
    declare(
        "GET /v1/fota-jobs", "ListFOTAJobs", "Jobs, newest first.", _listed,
        tag="FOTA", parameters=PAGES, answers={200: list_of(_SHOWN)},
    ),
    declare(f"GET {_ONE}", "FetchFOTAJob", "A job.", _fetch, tag="FOTA", answers={200: _SHOWN}),
    declare(
        f"DELETE {_ONE}", "DeleteFOTAJob", "Delete a job.", _delete,
        tag="FOTA", answers={202: None},
    ),
    declare(
        f"POST {_ONE}/apply", "ApplyFOTAJob", "Start a job.", _apply,
        tag="FOTA", changes=True, refusals=(409,), answers={202: None},
    ),
    declare(
        f"PUT {_ONE}/cancel", "CancelFOTAJob", "Cancel a job.", _cancel, tag="FOTA",
        parameters=in_query(reason=TEXT), refusals=(409,), answers={202: None},
    ),
)  # fmt: skip
