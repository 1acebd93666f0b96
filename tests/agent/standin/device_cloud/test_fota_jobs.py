"""FOTA jobs at the stand-in (clause D9.2)."""

from __future__ import annotations

import pytest

from tests.support.cloud.standin import StandIn
from tests.support.fota.fota_calls import (
    DEVICE,
    IMAGE,
    OTHER,
    bundle,
    call,
    current,
    job,
    report,
    upload,
)


@pytest.mark.contract("D9.2")
async def test_a_job_is_pending_for_its_device_alone_until_it_has_ended(standin: StandIn) -> None:
    nothing = await current(standin)
    assert (nothing.status_code, nothing.json()["code"]) == (404, 40499)
    job_id = await job(standin, await upload(standin, bundle()))
    pending = await current(standin)
    execution = pending.json()
    assert execution["jobId"] == job_id
    assert execution["status"] == "QUEUED"
    assert pending.headers["etag"] == execution["$meta"]["version"]
    document = execution["jobDocument"]
    assert document["host"] == standin.urls["downloads"]
    assert not document["path"].startswith("/")
    assert "*" in document["path"]
    assert document["fileSize"] == len(IMAGE)
    assert document["firmwareType"] == "APP"
    assert (await current(standin, OTHER)).status_code == 404
    assert await report(standin, job_id, "IN_PROGRESS") == 202
    assert (await current(standin)).json()["status"] == "IN_PROGRESS"
    assert await report(standin, job_id, "SUCCEEDED", details="fine") == 202
    assert (await current(standin)).status_code == 404
    shown = (await call(standin, "GET", f"/fota-jobs/{job_id}")).json()
    assert shown["status"] == "COMPLETED"
    assert shown["completedAt"] == shown["lastUpdatedAt"]
    assert shown["executionStats"]["succeeded"] == 1
    one = await call(standin, "GET", f"/fota-job-executions/{DEVICE}/{job_id}")
    assert one.json()["statusDetail"] == "fine"
    # What has ended stays as it ended.
    assert (await call(standin, "PUT", f"/fota-jobs/{job_id}/cancel")).status_code == 409
    assert (await call(standin, "GET", f"/fota-jobs/{job_id}")).json()["status"] == "COMPLETED"


async def test_a_device_that_the_team_does_not_have_is_unknown_and_not_without_a_job(
    standin: StandIn,
) -> None:
    unknown = await current(standin, "nrf-000000000000000")
    assert (unknown.status_code, unknown.json()["code"]) == (404, 40410)


async def test_no_text_of_a_job_is_empty_and_its_files_are_named_relative_to_the_host(
    standin: StandIn,
) -> None:
    files = {"a.bin": b"slot 0", "b.bin": b"slot 1"}
    bundle_id = await upload(standin, bundle("mcuboot", files=files))
    texts = {"name", "description", "statusDetail"}

    async def shown(job_id: str) -> dict:
        job = (await call(standin, "GET", f"/fota-jobs/{job_id}")).json()
        (listed,) = (await call(standin, "GET", "/fota-jobs")).json()["items"]
        assert listed == job
        return job

    job_id = await job(standin, bundle_id, name="", description="")
    bare = await shown(job_id)
    assert not texts & set(bare)
    place = f"{standin.team_id}/{bundle_id}"
    assert bare["firmware"]["uris"] == [f"{place}/a.bin", f"{place}/b.bin"]
    assert bare["firmware"]["host"] == standin.urls["downloads"]
    cancelled = await call(standin, "PUT", f"/fota-jobs/{job_id}/cancel?reason=too%20soon")
    assert (cancelled.status_code, cancelled.headers["content-length"]) == (202, "0")
    assert (await shown(job_id))["statusDetail"] == "too soon"
    await call(standin, "DELETE", f"/fota-jobs/{job_id}")
    named = await shown(await job(standin, bundle_id, name="spring", description="all of them"))
    assert (named["name"], named["description"]) == ("spring", "all of them")


@pytest.mark.contract("D5.2", "D5.3")
async def test_jobs_bundles_and_executions_have_versions_that_if_match_checks(
    standin: StandIn,
) -> None:
    bundle_id = await upload(standin, bundle())
    job_id = await job(standin, bundle_id, autoApply="false")
    stale = {"If-Match": "stale"}
    for path, change, given in (
        (f"/fota-jobs/{job_id}", ("POST", "/apply"), {}),
        (f"/fota-job-executions/{DEVICE}/{job_id}", ("PATCH", ""), {"json": {"status": "FAILED"}}),
        (f"/fota-jobs/{job_id}", ("DELETE", ""), {}),
        (f"/firmwares/{bundle_id}", ("DELETE", ""), {}),
    ):
        read = await call(standin, "GET", path)
        assert read.headers["etag"] == read.json()["$meta"]["version"], path
        method, suffix = change
        refused = await call(standin, method, path + suffix, headers=stale, **given)
        assert refused.status_code == 412, path
        good = {"If-Match": read.headers["etag"]}
        done = await call(standin, method, path + suffix, headers=good, **given)
        assert done.status_code == 202, done.text
    account = await call(standin, "GET", "/account")
    assert account.headers["etag"] == account.json()["$meta"]["version"]


async def test_a_job_by_tag_reaches_every_device_that_carries_it(standin: StandIn) -> None:
    job_id = await job(standin, await upload(standin, bundle()), tags=["demo"])
    assert (await current(standin)).json()["jobId"] == job_id
    statuses = await call(standin, "GET", f"/fota-job-execution-statuses/{job_id}")
    assert [item["deviceId"] for item in statuses.json()["items"]] == [DEVICE]


@pytest.mark.parametrize(
    "body",
    [{}, {"bundleId": "x"}, {"bundleId": 5}, [], {"bundleId": "B", "deviceIds": [], "tags": []}],
)
async def test_a_malformed_job_is_refused(standin: StandIn, body: object) -> None:
    assert (await call(standin, "POST", "/fota-jobs", json=body)).status_code in {404, 422}


async def test_a_job_for_an_unknown_device_is_refused_and_leaves_nothing(standin: StandIn) -> None:
    bundle_id = await upload(standin, bundle())
    refused = await call(
        standin, "POST", "/fota-jobs", json={"bundleId": bundle_id, "deviceIds": [DEVICE, "nobody"]}
    )
    assert (refused.status_code, refused.json()["code"]) == (404, 40410)
    assert (await call(standin, "GET", "/fota-jobs")).json()["items"] == []
    assert (await current(standin)).status_code == 404


async def test_a_device_that_a_job_names_twice_is_updated_once(standin: StandIn) -> None:
    bundle_id = await upload(standin, bundle())
    job_id = await job(standin, bundle_id, deviceIds=[DEVICE, DEVICE.upper()])
    shown = (await call(standin, "GET", f"/fota-jobs/{job_id}")).json()
    assert shown["executionStats"]["executions"] == 1
    listed = await call(standin, "GET", f"/fota-job-executions/{DEVICE}")
    assert [one["jobId"] for one in listed.json()["items"]] == [job_id]
