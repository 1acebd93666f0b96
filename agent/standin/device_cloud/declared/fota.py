"""FOTA: declared."""

from __future__ import annotations

from collections.abc import Iterator

from agent.standin.core.operation import Operation, Parameter
from agent.standin.core.schema import Schema
from agent.standin.device_cloud.declared import shapes
from agent.standin.device_cloud.executions import REPORT
from agent.standin.device_cloud.fota_jobs import JOB


def fota() -> Iterator[Operation]:
    """Yield the operations of FOTA."""
    yield from _bundles()
    yield from _jobs()
    yield from _executions()


def _bundles() -> Iterator[Operation]:
    tag = "FOTA"
    bundle: Schema = {
        "type": "string",
        "format": "firmware-bundle",
        "contentMediaType": "application/zip",
        "description": "A zip: manifest.json, and the files of one firmware type that it names.",
    }
    base64 = {**bundle, "format": "firmware-bundle-base64", "contentEncoding": "base64"}
    zipped: dict[str, Schema] = {
        "application/zip": bundle,
        shapes.BYTES: bundle,
        "text/plain": base64,
    }
    yield shapes.declare(
        "GET /v1/firmwares",
        "ListFirmware",
        "Bundles.",
        tag=tag,
        parameters=(Parameter(name="modemOnly", schema=shapes.FLAG), *shapes.PAGES),
        answers={200: shapes.LIST},
    )
    yield shapes.declare(
        "POST /v1/firmwares",
        "UploadFirmware",
        "A bundle, as a zip with a manifest.",
        tag=tag,
        bodies=zipped,
        answers={202: shapes.OBJECT},
    )
    place = "/v1/firmwares/{bundle_id}"
    yield shapes.declare(
        f"GET {place}", "FetchFirmware", "A bundle.", tag=tag, answers={200: shapes.WHOLE}
    )
    yield shapes.declare(
        f"DELETE {place}", "DeleteFirmware", "Delete a bundle.", tag=tag, answers={202: None}
    )


def _jobs() -> Iterator[Operation]:
    tag = "FOTA"
    yield shapes.declare(
        "POST /v1/fota-jobs",
        "CreateFOTAJob",
        "Update devices.",
        tag=tag,
        body=JOB,
        answers={201: shapes.OBJECT},
    )
    yield shapes.declare(
        "GET /v1/fota-jobs",
        "ListFOTAJobs",
        "Jobs, newest first.",
        tag=tag,
        parameters=shapes.PAGES,
        answers={200: shapes.LIST},
    )
    job = "/v1/fota-jobs/{job_id}"
    yield shapes.declare(
        f"GET {job}", "FetchFOTAJob", "A job.", tag=tag, answers={200: shapes.WHOLE}
    )
    yield shapes.declare(
        f"DELETE {job}", "DeleteFOTAJob", "Delete a job.", tag=tag, answers={202: None}
    )
    yield shapes.declare(
        f"POST {job}/apply",
        "ApplyFOTAJob",
        "Start a job.",
        tag=tag,
        changes=True,
        refusals=(409,),
        answers={202: None},
    )
    yield shapes.declare(
        f"PUT {job}/cancel",
        "CancelFOTAJob",
        "Cancel a job.",
        tag=tag,
        parameters=(Parameter(name="reason", schema=shapes.TEXT),),
        refusals=(409,),
        answers={202: None},
    )


def _executions() -> Iterator[Operation]:
    tag = "FOTA"
    device = "/v1/fota-job-executions/{device_id}"
    yield shapes.declare(
        f"GET {device}/current",
        "FetchCurrentPendingFOTAJobExecution",
        "The oldest execution that waits for a device.",
        tag=tag,
        security=shapes.BOTH,
        parameters=(Parameter(name="firmwareType", schema=shapes.TEXT),),
        answers={200: shapes.WHOLE},
    )
    yield shapes.declare(
        f"GET {device}",
        "ListFOTAJobExecutions",
        "A device's executions.",
        tag=tag,
        parameters=shapes.PAGES,
        answers={200: shapes.LIST},
    )
    yield shapes.declare(
        f"GET {device}/{{job_id}}",
        "FetchFOTAJobExecution",
        "An execution.",
        tag=tag,
        answers={200: shapes.WHOLE},
    )
    yield shapes.declare(
        f"PATCH {device}/{{job_id}}",
        "UpdateFOTAJobExecution",
        "Report how it goes.",
        tag=tag,
        security=shapes.BOTH,
        body=REPORT,
        answers={202: None},
    )
    yield shapes.declare(
        "GET /v1/fota-job-execution-statuses/{job_id}",
        "ListFOTAJobExecutionStatuses",
        "A job's executions.",
        tag=tag,
        parameters=(
            Parameter(name="status", schema={"type": "array", "items": shapes.TEXT}),
            *shapes.PAGES,
        ),
        answers={200: shapes.LIST},
    )
