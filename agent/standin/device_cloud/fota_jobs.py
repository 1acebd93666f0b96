"""FOTA jobs: created by users, each with one execution per device."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.standin.clock import iso
from agent.standin.core.dispatch import Endpoint
from agent.standin.core.responses import JSON
from agent.standin.core.schema import Schema
from agent.standin.device_cloud import access, bundles, executions, paging
from agent.standin.device_cloud.devices.registry import registry
from agent.standin.device_cloud.refusals import DeviceCloudRefused, not_found
from agent.standin.device_cloud.resource import (
    accepted,
    answer_one,
    check_if_match,
    read_json,
    with_meta,
)
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
        "autoApply": {"enum": [True, False, "true", "false"]},
    },
}


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of jobs."""

    async def create(request: Request) -> Response:
        principal = access.user(request, cloud)
        row = _job(cloud, principal.team, await read_json(request, JOB))
        cloud.table("jobs").put(row["jobId"], row)
        if row["status"] == "IN_PROGRESS":
            _apply(cloud, row)
        return JSON({"jobId": row["jobId"]}, 201)

    async def listed(request: Request) -> Response:
        principal = access.user(request, cloud)
        rows = [row for row in cloud.table("jobs").values() if row["team"] == principal.team]
        items, rest = paging.page(request, descending=True).cut(rows)
        return JSON({"items": [to_resource(cloud, row) for row in items], **rest})

    async def fetch(request: Request) -> Response:
        principal = access.user(request, cloud)
        return answer_one(to_resource(cloud, _find(request, cloud, principal.team)))

    async def apply(request: Request) -> Response:
        row = _job_to_change(request, cloud)
        if row["status"] != "CREATED":
            raise DeviceCloudRefused(409, "the job was applied before")
        _apply(cloud, {**row, "status": "IN_PROGRESS"})
        return accepted()

    async def cancel(request: Request) -> Response:
        row = _job_to_change(request, cloud)
        if row["status"] not in {"CREATED", "IN_PROGRESS"}:
            raise DeviceCloudRefused(409, "the job has ended")
        reason = request.query_params.get("reason", "")[:1024]
        _store(cloud, {**row, "status": "CANCELLED", "status_detail": reason})
        executions.cancel_job(cloud, row["jobId"], reason)
        return accepted()

    async def delete(request: Request) -> Response:
        row = _job_to_change(request, cloud)
        executions.delete_job(cloud, row["jobId"])
        cloud.table("jobs").delete(row["jobId"])
        return accepted()

    one = "/v1/fota-jobs/{job_id}"
    return [
        Endpoint("/v1/fota-jobs", create, methods=["POST"], name="CreateFOTAJob"),
        Endpoint("/v1/fota-jobs", listed, methods=["GET"], name="ListFOTAJobs"),
        Endpoint(one, fetch, methods=["GET"], name="FetchFOTAJob"),
        Endpoint(one, delete, methods=["DELETE"], name="DeleteFOTAJob"),
        Endpoint(one + "/apply", apply, methods=["POST"], name="ApplyFOTAJob"),
        Endpoint(one + "/cancel", cancel, methods=["PUT"], name="CancelFOTAJob"),
    ]


def to_resource(cloud: Cloud, row: dict[str, Any]) -> dict[str, Any]:
    """Return the job resource; it is complete once every execution has ended."""
    rows = executions.of_job(cloud, row["jobId"])
    counts = Counter(execution["status"] for execution in rows)
    ended = sum(counts[name] for name in executions.FINAL)
    status = row["status"]
    if status == "IN_PROGRESS" and rows and ended == len(rows):
        status = "COMPLETED"
    changed = max([row["updated_at"], *(e["updated_at"] for e in rows)])
    resource = {
        "jobId": row["jobId"],
        "name": row["name"],
        "description": row["description"],
        "status": status,
        "statusDetail": row["status_detail"],
        "target": row["target"],
        "firmware": row["firmware"],
        "executionStats": {
            "executions": len(rows),
            "devices": len(rows),
            **{key: counts[name] for name, key in _COUNTERS.items()},
            "removed": 0,
            "completedExecutions": ended,
        },
        "createdAt": iso(row["created_at"]),
        "lastUpdatedAt": iso(changed),
    }
    if status in {"COMPLETED", "CANCELLED"}:
        resource["completedAt"] = iso(changed)
    return with_meta(resource, iso(row["created_at"]), iso(changed))


def _job(cloud: Cloud, team: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return a new job's row from the body of CreateFOTAJob."""
    bundle = bundles.find(cloud, team, body["bundleId"])
    ids = body.get("deviceIds", body.get("deviceIdentifiers", []))
    applied = body.get("autoApply", True) not in {False, "false"}
    now = cloud.clock.time()
    return {
        "jobId": str(uuid.uuid4()),
        "team": team,
        "name": body.get("name", ""),
        "description": body.get("description", ""),
        "status": "IN_PROGRESS" if applied else "CREATED",
        "status_detail": "",
        "target": {
            "deviceIds": list(dict.fromkeys(ids)),
            "tags": list(dict.fromkeys(body.get("tags", []))),
        },
        "firmware": {
            "bundleId": bundle["bundleId"],
            "host": cloud.urls["downloads"],
            "fileSize": bundle["size"],
            "firmwareType": bundle["type"],
            "version": bundle["version"],
            "uris": bundle["uris"],
        },
        # The two builds of a bootloader are in one path, separated by a space.
        "path": " ".join(bundle["paths"]),
        "created_at": now,
        "updated_at": now,
    }


def _apply(cloud: Cloud, row: dict[str, Any]) -> None:
    """Create an execution for each target."""
    target, devices = row["target"], registry(cloud)
    if target["tags"]:
        wanted = set(target["tags"])
        records = [
            r for r in devices.walk(row["team"]) if not wanted.isdisjoint(r["fields"]["tags"])
        ]
    else:
        records = [devices.get(row["team"], device_id) for device_id in target["deviceIds"]]
    for record in records:
        executions.create(cloud, row, record["fields"]["id"])
    _store(cloud, row)


def _find(request: Request, cloud: Cloud, team: str) -> dict[str, Any]:
    row: dict[str, Any] | None = cloud.table("jobs").get(request.path_params["job_id"])
    if row is None or row["team"] != team:
        raise not_found("no such job")
    return row


def _job_to_change(request: Request, cloud: Cloud) -> dict[str, Any]:
    principal = access.user(request, cloud)
    row = _find(request, cloud, principal.team)
    check_if_match(request, to_resource(cloud, row)["$meta"]["version"])
    return row


def _store(cloud: Cloud, row: dict[str, Any]) -> None:
    cloud.table("jobs").put(row["jobId"], {**row, "updated_at": cloud.clock.time()})
