"""FOTA job executions at the stand-in (clause D9.2)."""

from __future__ import annotations

import time
from pathlib import Path

import jwt
import pytest

from tests.support.cloud.standin import StandIn
from tests.support.fota.fota_calls import DEVICE, OTHER, bundle, call, current, job, report, upload


@pytest.mark.contract("D9.2", "D10.4")
async def test_either_scheme_fetches_and_a_key_for_another_service_does_not(
    standin: StandIn,
) -> None:
    await job(standin, await upload(standin, bundle()))
    folder = Path(standin.credentials["service_key_file"]).parent
    statuses = {}
    for service in ("fota", "location", "device"):
        for sub in ("", DEVICE, OTHER):
            claims = {"aud": standin.team_id, "iat": int(time.time())} | (
                {"sub": sub} if sub else {}
            )
            key = (folder / f"service-key-{service}.pem").read_text()
            token = jwt.encode(claims, key, algorithm="ES256")
            answer = await standin.client.get(
                f"/v1/fota-job-executions/{DEVICE}/current",
                headers={"Authorization": f"Bearer {token}"},
            )
            statuses[service, sub] = answer.status_code
    assert {k: v for k, v in statuses.items() if k[0] == "fota"} == {
        ("fota", ""): 200,
        ("fota", DEVICE): 200,
        ("fota", OTHER): 403,
    }
    assert all(status == 401 for (service, _), status in statuses.items() if service != "fota")


async def test_the_oldest_job_comes_first_and_one_that_downloads_is_not_shown(
    standin: StandIn,
) -> None:
    bundle_id = await upload(standin, bundle())
    first, second = await job(standin, bundle_id), await job(standin, bundle_id)
    assert (await current(standin)).json()["jobId"] == first
    assert await report(standin, first, "DOWNLOADING") == 202
    assert (await current(standin)).status_code == 404
    assert await report(standin, first, "IN_PROGRESS") == 202
    assert (await current(standin)).json()["jobId"] == first
    assert await report(standin, first, "FAILED") == 202
    assert (await current(standin)).json()["jobId"] == second
    cancelled = await call(standin, "PUT", f"/fota-jobs/{second}/cancel", params={"reason": "no"})
    assert cancelled.status_code == 202
    assert (await current(standin)).status_code == 404


async def test_only_legal_changes_of_an_execution_are_taken(standin: StandIn) -> None:
    job_id = await job(standin, await upload(standin, bundle()))
    assert await report(standin, job_id, "NONSENSE") == 422
    assert await report(standin, "00000000-0000-0000-0000-000000000000", "FAILED") == 404
    assert await report(standin, job_id, "IN_PROGRESS") == 202
    assert await report(standin, job_id, "QUEUED") == 400
    assert await report(standin, job_id, "REJECTED") == 202
    assert await report(standin, job_id, "REJECTED") == 202
    assert await report(standin, job_id, "SUCCEEDED") == 400
    assert await report(standin, job_id, "IN_PROGRESS") == 400
