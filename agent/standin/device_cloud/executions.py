"""FOTA job executions: one device's part of a job, and its life cycle (clause D9.2)."""

import uuid

from msgspec.structs import asdict
from starlette.responses import Response

from agent.standin.clock import iso
from agent.standin.core.operation import in_query
from agent.standin.core.schema import MOMENT, TEXT, body_schema, texts
from agent.standin.device_cloud import tables
from agent.standin.device_cloud.access import FOTA_DEVICE
from agent.standin.device_cloud.devices.registry import own_device
from agent.standin.device_cloud.operations import Context, declare
from agent.standin.device_cloud.paging import PAGES
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, not_found
from agent.standin.device_cloud.resource import Resource, accepted, answer_one, with_meta
from agent.standin.device_cloud.shapes import TEXTS, list_of, of, resource
from agent.standin.state import Cloud

FINAL = frozenset({"SUCCEEDED", "FAILED", "REJECTED", "TIMED_OUT", "CANCELLED"})
# From a status to those that may follow it; only itself follows a final one.
TRANSITIONS: dict[str, frozenset[str]] = {
    "QUEUED": FINAL | {"QUEUED", "IN_PROGRESS", "DOWNLOADING"},
    "DOWNLOADING": FINAL | {"DOWNLOADING", "IN_PROGRESS"},
    "IN_PROGRESS": FINAL | {"IN_PROGRESS", "DOWNLOADING"},
    **{name: frozenset({name}) for name in FINAL},
}
REPORT = body_schema("status", status={"type": "string", "enum": sorted(TRANSITIONS)}, details=TEXT)
_LONGEST_DETAIL = 1024


async def _current(context: Context) -> Response:
    own_device(context)
    kind = context.query.get("firmwareType")
    for row in of_device(context.cloud, context.path["device_id"]):
        if row.team != context.team or kind not in {None, row.document.firmware_type}:
            continue
        # First in, first out: a download in progress holds back later jobs.
        if row.status == "DOWNLOADING":
            break
        if row.status in {"QUEUED", "IN_PROGRESS"}:
            return answer_one(to_resource(row))
    raise DeviceCloudRefused(404, "no FOTA job is pending for this device", code=40499)


async def _update(context: Context) -> Response:
    row = _find(context)
    context.check_if_match(to_resource(row).version)
    status, details = context.body["status"], context.body.get("details", "")
    if status not in TRANSITIONS[row.status]:
        raise bad_request(f"an execution does not go from {row.status} to {status}")
    if status != row.status or status not in FINAL:
        _store(context.cloud, row, status, details[:_LONGEST_DETAIL])
    return accepted()


async def _listed(context: Context) -> Response:
    rows = of_device(context.cloud, own_device(context).fields.id)
    return context.page().answer((r for r in rows if r.team == context.team), to_resource)


async def _fetch(context: Context) -> Response:
    return answer_one(to_resource(_find(context)))


async def _list_of_job(context: Context) -> Response:
    cloud, job = context.cloud, context.path["job_id"]
    if job not in cloud.table(tables.JOBS):
        raise not_found("no such job")
    wanted = set(context.query.get("status", ()))
    rows = (
        row
        for row in of_job(cloud, job)
        if row.team == context.team and (not wanted or row.status in wanted)
    )
    return context.page().answer(rows, to_resource)


def create(cloud: Cloud, job: tables.Job, device_id: str) -> None:
    """Queue a job for a device."""
    now = cloud.clock.time()
    row = tables.Execution(
        id=str(uuid.uuid4()),
        job_id=job.id,
        device_id=device_id,
        team=job.team,
        status="QUEUED",
        status_detail="",
        document=tables.JobDocument(path=job.path, **asdict(job.firmware)),
        created_at=now,
        updated_at=now,
    )
    key = device_id.casefold()
    cloud.table(tables.EXECUTIONS).put(f"{key}/{job.id}", row)
    cloud.table(tables.QUEUES).put(key, [*(cloud.table(tables.QUEUES).get(key) or ()), job.id])
    devices = cloud.table(tables.JOB_DEVICES)
    devices.put(job.id, [*(devices.get(job.id) or ()), key])


def of_device(cloud: Cloud, device_id: str) -> list[tables.Execution]:
    """Return a device's executions, oldest first."""
    key = device_id.casefold()
    table = cloud.table(tables.EXECUTIONS)
    return [table[f"{key}/{job}"] for job in cloud.table(tables.QUEUES).get(key) or ()]


def of_job(cloud: Cloud, job_id: str) -> list[tables.Execution]:
    """Return a job's executions."""
    table = cloud.table(tables.EXECUTIONS)
    return [table[f"{key}/{job_id}"] for key in cloud.table(tables.JOB_DEVICES).get(job_id) or ()]


def cancel_job(cloud: Cloud, job_id: str, reason: str) -> None:
    """Cancel the executions of a job that have not ended, even during a download."""
    for row in of_job(cloud, job_id):
        if row.status not in FINAL:
            _store(cloud, row, "CANCELLED", reason)


def delete_job(cloud: Cloud, job_id: str) -> None:
    """Remove a job's executions."""
    queues = cloud.table(tables.QUEUES)
    for row in of_job(cloud, job_id):
        key = row.device_id.casefold()
        queues.put(key, [job for job in queues[key] if job != job_id])
        cloud.table(tables.EXECUTIONS).delete(f"{key}/{job_id}")
    cloud.table(tables.JOB_DEVICES).delete(job_id)


def to_resource(row: tables.Execution) -> Resource:
    """Return the execution resource."""
    created, updated = iso(row.created_at), iso(row.updated_at)
    resource = {
        "tenantId": row.team,
        "deviceId": row.device_id,
        "jobId": row.job_id,
        "executionId": row.id,
        "status": row.status,
        "statusDetail": row.status_detail,
        "createdAt": created,
        "lastUpdatedAt": updated,
        "jobDocument": row.document,
    }
    return with_meta(resource, created, updated)


def _find(context: Context) -> tables.Execution:
    key = f"{context.path['device_id'].casefold()}/{context.path['job_id']}"
    missing = DeviceCloudRefused(404, "no such execution", code=40410)
    return context.own(tables.EXECUTIONS, key, missing)


def _store(cloud: Cloud, row: tables.Execution, status: str, detail: str) -> None:
    row.status, row.status_detail, row.updated_at = status, detail, cloud.clock.time()
    cloud.table(tables.EXECUTIONS).put(f"{row.device_id.casefold()}/{row.job_id}", row)


_DEVICE = "/v1/fota-job-executions/{device_id}"
_SHOWN = resource(
    "statusDetail",
    **texts("tenantId", "deviceId", "jobId", "executionId", "status", "statusDetail"),
    createdAt=MOMENT,
    lastUpdatedAt=MOMENT,
    jobDocument=of(tables.JobDocument),
)
OPERATIONS = (
    declare(
        f"GET {_DEVICE}/current", "FetchCurrentPendingFOTAJobExecution",
        "The oldest execution that waits for a device.", _current, tag="FOTA", access=FOTA_DEVICE,
        parameters=in_query(firmwareType=TEXT), answers={200: _SHOWN},
    ),
    declare(
        f"GET {_DEVICE}", "ListFOTAJobExecutions", "A device's executions.", _listed,
        tag="FOTA", parameters=PAGES, answers={200: list_of(_SHOWN)},
    ),
    declare(
        f"GET {_DEVICE}/{{job_id}}", "FetchFOTAJobExecution", "An execution.", _fetch,
        tag="FOTA", answers={200: _SHOWN},
    ),
    declare(
        f"PATCH {_DEVICE}/{{job_id}}", "UpdateFOTAJobExecution", "Report how it goes.", _update,
        tag="FOTA", access=FOTA_DEVICE, body=REPORT, answers={202: None},
    ),
    declare(
        "GET /v1/fota-job-execution-statuses/{job_id}", "ListFOTAJobExecutionStatuses",
        "A job's executions.", _list_of_job, tag="FOTA",
        parameters=(*in_query(status=TEXTS), *PAGES), answers={200: list_of(_SHOWN)},
    ),
)  # fmt: skip
