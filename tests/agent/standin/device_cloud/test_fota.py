"""Bundles, jobs, executions and downloads at the stand-in (clauses D1.4, D9.2)."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path

import jwt
import pytest
from standin import StandIn

DEVICE = "nrf-352656109000002"
OTHER = "nrf-352656109000001"
IMAGE = bytes(range(256)) * 40


def bundle(
    kind: str = "application", version: str = "2.0.1", files: dict[str, bytes] | None = None
) -> bytes:
    files = {"app.bin": IMAGE} if files is None else files
    manifest = {
        "name": "test",
        "fwversion": version,
        "format-version": 1,
        "files": [{"file": name, "type": kind, "size": len(c)} for name, c in files.items()],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


async def call(standin: StandIn, method: str, path: str, *, headers: dict | None = None, **given):
    return await standin.client.request(
        method, "/v1" + path, headers=standin.bearer("api_key") | (headers or {}), **given
    )


async def upload(standin: StandIn, content: bytes) -> str:
    sent = await call(
        standin, "POST", "/firmwares", headers={"Content-Type": "application/zip"}, content=content
    )
    assert sent.status_code == 202, sent.text
    newest = (await call(standin, "GET", "/firmwares")).json()["items"][-1]
    assert sent.json()["uris"][0].startswith(standin.urls["downloads"])
    return newest["bundleId"]


async def job(standin: StandIn, bundle_id: str, **given: object) -> str:
    target = {} if "tags" in given else {"deviceIds": [DEVICE]}
    made = await call(
        standin, "POST", "/fota-jobs", json={"bundleId": bundle_id, **target, **given}
    )
    assert made.status_code == 201, made.text
    return made.json()["jobId"]


async def current(standin: StandIn, device: str = DEVICE):
    return await call(standin, "GET", f"/fota-job-executions/{device}/current")


async def report(standin: StandIn, job_id: str, status: str, **more: str) -> int:
    path = f"/fota-job-executions/{DEVICE}/{job_id}"
    return (await call(standin, "PATCH", path, json={"status": status, **more})).status_code


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
    assert shown["executionStats"]["succeeded"] == 1
    one = await call(standin, "GET", f"/fota-job-executions/{DEVICE}/{job_id}")
    assert one.json()["statusDetail"] == "fine"


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


@pytest.mark.contract("D1.4")
async def test_a_modem_image_is_offered_to_a_modem_of_any_age(standin: StandIn) -> None:
    for kind, expected in (("modem", "MODEM"), ("mdm_full", "MDM_FULL"), ("mcuboot", "BOOT")):
        files = {"a.bin": b"a" * 10} | ({"b.bin": b"b" * 10} if kind == "mcuboot" else {})
        job_id = await job(standin, await upload(standin, bundle(kind, "mfw_1.3.0", files)))
        document = (await current(standin)).json()["jobDocument"]
        assert document["firmwareType"] == expected
        assert len(document["path"].split(" ")) == len(files)
        await report(standin, job_id, "REJECTED")


async def test_a_job_by_tag_reaches_every_device_that_carries_it(standin: StandIn) -> None:
    job_id = await job(standin, await upload(standin, bundle()), tags=["demo"])
    assert (await current(standin)).json()["jobId"] == job_id
    statuses = await call(standin, "GET", f"/fota-job-execution-statuses/{job_id}")
    assert [item["deviceId"] for item in statuses.json()["items"]] == [DEVICE]


async def test_an_image_is_downloaded_whole_in_ranges_and_resumed(standin: StandIn) -> None:
    await job(standin, await upload(standin, bundle()))
    document = (await current(standin)).json()["jobDocument"]
    url = f"{document['host']}/{document['path']}"

    async def get(method: str = "GET", **headers: str):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await standin.client.request(method, url, headers=sent)

    whole = await get()
    assert (whole.status_code, whole.content) == (200, IMAGE)
    assert whole.headers["content-length"] == str(len(IMAGE))
    etag = whole.headers["etag"]
    head = await get("HEAD")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(IMAGE)))
    pieces = b""
    while len(pieces) < len(IMAGE):
        part = await get(Range=f"bytes={len(pieces)}-{len(pieces) + 1699}", If_Range=etag)
        assert part.status_code == 206
        last = min(len(pieces) + 1699, len(IMAGE) - 1)
        assert part.headers["content-range"] == f"bytes {len(pieces)}-{last}/{len(IMAGE)}"
        pieces += part.content
    assert pieces == IMAGE
    rest = await get(Range="bytes=10000-")
    assert (rest.status_code, rest.content) == (206, IMAGE[10000:])
    tail = await get(Range="bytes=-5")
    assert tail.content == IMAGE[-5:]
    changed = await get(Range="bytes=5-", If_Range='"other"')
    assert (changed.status_code, changed.content) == (200, IMAGE)
    beyond = await get(Range=f"bytes={len(IMAGE)}-")
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{len(IMAGE)}"
    odd = await get(Range="lines=1-2")
    assert odd.status_code == 200


def hostile_zip(name: str, content: bytes = b"x", manifest: object = None) -> bytes:
    packed = io.BytesIO()
    given = {"fwversion": "1", "files": [{"file": name, "type": "application"}]}
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(given if manifest is None else manifest))
        archive.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no zip",
        bundle()[:-10],
        hostile_zip("../../etc/passwd"),
        hostile_zip("a/b.bin"),
        hostile_zip("bomb.bin", bytes(20 * 1024 * 1024)),
        hostile_zip("a.bin", manifest=[]),
        hostile_zip("a.bin", manifest={"files": []}),
        hostile_zip("a.bin", manifest={"fwversion": "1", "files": [{"file": "b.bin"}]}),
        hostile_zip("a.bin", manifest={"fwversion": "1 2", "files": [{"file": "a.bin"}]}),
    ],
    ids=[
        "empty",
        "text",
        "cut",
        "traversal",
        "folder",
        "bomb",
        "list",
        "none",
        "absent",
        "version",
    ],
)
async def test_a_hostile_bundle_is_refused(standin: StandIn, content: bytes) -> None:
    sent = await call(
        standin, "POST", "/firmwares", headers={"Content-Type": "application/zip"}, content=content
    )
    assert sent.status_code in {400, 422}
    assert (await call(standin, "GET", "/firmwares")).json()["items"] == []


@pytest.mark.parametrize(
    "body",
    [{}, {"bundleId": "x"}, {"bundleId": 5}, [], {"bundleId": "B", "deviceIds": [], "tags": []}],
)
async def test_a_malformed_job_is_refused(standin: StandIn, body: object) -> None:
    assert (await call(standin, "POST", "/fota-jobs", json=body)).status_code in {404, 422}
