"""FOTA job executions: one device's part of a job, and its life cycle (clause D9.2).

Table `executions`: "device/job" -> row; `queues`: device -> its job ids, oldest first.
"""

from __future__ import annotations

import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.clock import iso
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import access, paging
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.refusals import DeviceCloudRefused, bad_request, not_found
from agent.standin.device_cloud.resource import (
    accepted,
    answer_one,
    check_if_match,
    read_json,
    receive_body,
    with_meta,
)
from agent.standin.state import Cloud

FINAL = frozenset({"SUCCEEDED", "FAILED", "REJECTED", "TIMED_OUT", "CANCELLED"})
# From a status to those that may follow it; only itself follows a final one.
TRANSITIONS: dict[str, frozenset[str]] = {
    "QUEUED": FINAL | {"QUEUED", "IN_PROGRESS", "DOWNLOADING"},
    "DOWNLOADING": FINAL | {"DOWNLOADING", "IN_PROGRESS"},
    "IN_PROGRESS": FINAL | {"IN_PROGRESS", "DOWNLOADING"},
    **{name: frozenset({name}) for name in FINAL},
}
REPORT: Schema = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"type": "string", "enum": sorted(TRANSITIONS)},
        "details": {"type": "string"},
    },
}
_LONGEST_DETAIL = 1024


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of executions."""

    async def current(request: Request) -> Response:
        device_id = request.path_params["device_id"]
        principal = access.user_or_device(request, cloud, device_id, "fota")
        kind = request.query_params.get("firmwareType")
        for row in of_device(cloud, device_id):
            if row["team"] != principal.team or kind not in {None, row["document"]["firmwareType"]}:
                continue
            # First in, first out: a download in progress holds back later jobs.
            if row["status"] == "DOWNLOADING":
                break
            if row["status"] in {"QUEUED", "IN_PROGRESS"}:
                return answer_one(to_resource(row))
        raise DeviceCloudRefused(404, "no FOTA job is pending for this device", code=40499)

    async def update(request: Request) -> Response:
        device_id = request.path_params["device_id"]
        principal = access.user_or_device(request, cloud, device_id, "fota")
        await receive_body(request)
        row = _find(request, cloud, principal.team)
        check_if_match(request, to_resource(row)["$meta"]["version"])
        body = await read_json(request, REPORT)
        status, details = body["status"], body.get("details", "")
        if status not in TRANSITIONS[row["status"]]:
            raise bad_request(f"an execution does not go from {row['status']} to {status}")
        if status != row["status"] or status not in FINAL:
            _store(cloud, row, status, details[:_LONGEST_DETAIL])
        return accepted()

    device = "/v1/fota-job-executions/{device_id}"
    return [
        Endpoint(
            device + "/current",
            current,
            methods=["GET"],
            name="FetchCurrentPendingFOTAJobExecution",
        ),
        Endpoint(device + "/{job_id}", update, methods=["PATCH"], name="UpdateFOTAJobExecution"),
        *_lists(cloud),
    ]


def _lists(cloud: Cloud) -> list[Route]:
    async def listed(request: Request) -> Response:
        principal = access.user(request, cloud)
        record = registry(cloud).get(principal.team, request.path_params["device_id"])
        rows = of_device(cloud, record["fields"]["id"])
        items, rest = paging.page(request).cut([r for r in rows if r["team"] == principal.team])
        return JSON({"items": [to_resource(row) for row in items], **rest})

    async def fetch(request: Request) -> Response:
        principal = access.user(request, cloud)
        return answer_one(to_resource(_find(request, cloud, principal.team)))

    async def of_one_job(request: Request) -> Response:
        principal = access.user(request, cloud)
        if request.path_params["job_id"] not in cloud.table("jobs"):
            raise not_found("no such job")
        wanted = set(paging.listed(request, "status"))
        rows = [
            row
            for row in of_job(cloud, request.path_params["job_id"])
            if row["team"] == principal.team and (not wanted or row["status"] in wanted)
        ]
        items, rest = paging.page(request).cut(rows)
        return JSON({"items": [to_resource(row) for row in items], **rest})

    device = "/v1/fota-job-executions/{device_id}"
    return [
        Endpoint(device, listed, methods=["GET"], name="ListFOTAJobExecutions"),
        Endpoint(device + "/{job_id}", fetch, methods=["GET"], name="FetchFOTAJobExecution"),
        Endpoint(
            "/v1/fota-job-execution-statuses/{job_id}",
            of_one_job,
            methods=["GET"],
            name="ListFOTAJobExecutionStatuses",
        ),
    ]


def create(cloud: Cloud, job: dict[str, Any], device_id: str) -> None:
    """Queue a job for a device."""
    now = cloud.clock.time()
    firmware = job["firmware"]
    row = {
        "executionId": str(uuid.uuid4()),
        "jobId": job["jobId"],
        "deviceId": device_id,
        "team": job["team"],
        "status": "QUEUED",
        "status_detail": "",
        "document": {
            "firmwareType": firmware["firmwareType"],
            "host": firmware["host"],
            "path": job["path"],
            "fileSize": firmware["fileSize"],
            "version": firmware["version"],
            "bundleId": firmware["bundleId"],
        },
        "created_at": now,
        "updated_at": now,
    }
    key = device_id.casefold()
    cloud.table("executions").put(f"{key}/{job['jobId']}", row)
    cloud.table("queues").put(key, [*(cloud.table("queues").get(key) or ()), job["jobId"]])
    devices = cloud.table("job_devices")
    devices.put(job["jobId"], [*(devices.get(job["jobId"]) or ()), key])


def of_device(cloud: Cloud, device_id: str) -> list[dict[str, Any]]:
    """Return a device's executions, oldest first."""
    key = device_id.casefold()
    table = cloud.table("executions")
    return [table.get(f"{key}/{job}") for job in cloud.table("queues").get(key) or ()]


def of_job(cloud: Cloud, job_id: str) -> list[dict[str, Any]]:
    """Return a job's executions."""
    table = cloud.table("executions")
    return [table.get(f"{key}/{job_id}") for key in cloud.table("job_devices").get(job_id) or ()]


def cancel_job(cloud: Cloud, job_id: str, reason: str) -> None:
    """Cancel the executions of a job that have not ended, even during a download."""
    for row in of_job(cloud, job_id):
        if row["status"] not in FINAL:
            _store(cloud, row, "CANCELLED", reason)


def delete_job(cloud: Cloud, job_id: str) -> None:
    """Remove a job's executions."""
    for row in of_job(cloud, job_id):
        key = row["deviceId"].casefold()
        queue = cloud.table("queues").get(key)
        cloud.table("queues").put(key, [job for job in queue if job != job_id])
        cloud.table("executions").delete(f"{key}/{job_id}")
    cloud.table("job_devices").delete(job_id)


def to_resource(row: dict[str, Any]) -> dict[str, Any]:
    """Return the execution resource."""
    created, updated = iso(row["created_at"]), iso(row["updated_at"])
    resource = {
        "tenantId": row["team"],
        "deviceId": row["deviceId"],
        "jobId": row["jobId"],
        "executionId": row["executionId"],
        "status": row["status"],
        "statusDetail": row["status_detail"],
        "createdAt": created,
        "lastUpdatedAt": updated,
        "jobDocument": row["document"],
    }
    return with_meta(resource, created, updated)


def _find(request: Request, cloud: Cloud, team: str) -> dict[str, Any]:
    key = request.path_params["device_id"].casefold()
    row: dict[str, Any] | None
    row = cloud.table("executions").get(f"{key}/{request.path_params['job_id']}")
    if row is None or row["team"] != team:
        raise DeviceCloudRefused(404, "no such execution", code=40410)
    return row


def _store(cloud: Cloud, row: dict[str, Any], status: str, detail: str) -> None:
    changed = {
        **row,
        "status": status,
        "status_detail": detail,
        "updated_at": cloud.clock.time(),
    }
    cloud.table("executions").put(f"{row['deviceId'].casefold()}/{row['jobId']}", changed)
