"""Files and releases: clauses O5.2, O5.3 and O5.4, the stand-in's half."""

from __future__ import annotations

import gzip
import hashlib
import struct
from urllib.parse import parse_qs, urlsplit

import pytest
from observability import Caller, an_event, error_of, upload, with_project_key, with_token
from sdk_bytes import coredump
from standin import StandIn

IDENTITY = {
    "device_serial": "kit-1",
    "hardware_version": "nrf9161dk",
    "software_type": "modem-app",
    "software_version": "2.4.1",
}
LATEST = {"device_serial": "kit-1", "hardware_version": "nrf9161dk", "software_type": "modem-app"}


async def make_release(standin: StandIn, version: str, data: bytes = b"image", **more: object):
    body = {
        "software_version": {"version": version, "software_type": "modem-app"},
        "hardware_version": "nrf9161dk",
        **more,
    }
    caller = with_token(standin)
    answer = await upload(caller, data, "OTA_PAYLOAD", "~/releases/ota_payload", body, "~/upload")
    assert answer.status_code == 202, answer.text


async def deploy(standin: StandIn, version: str, **more: object):
    body = {"release": version, "cohort": "default", **more}
    answer = await with_token(standin)("POST", "~/deployments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


@pytest.mark.contract("O5.2", "O5.3")
@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        ("ELF_COREDUMP", "elf_coredump", {"device": IDENTITY}),
        ("MAR", "mar", IDENTITY),
        ("ANDROID_BUG_REPORT", "bugreport", {}),
        ("CUSTOM_DATA_RECORDING", "custom-data-recording",
         {"start_time": "2026-01-02T03:04:05Z", "duration_secs": 0, "reason": "r",
          "mimetypes": ["application/vnd.zephyr.coredump"], "device": IDENTITY}),
    ],
)  # fmt: skip
async def test_a_device_uploads_a_file_of_each_kind(
    standin: StandIn, kind: str, path: str, body: dict
) -> None:
    caller = with_project_key(standin)
    answer = await upload(caller, b"payload", kind, f"/api/v0/upload/{path}", body)
    assert answer.status_code == 202, answer.text
    (stored,) = await with_token(standin).data("~/files", kind=kind)
    assert (stored["size"], stored["md5"]) == (7, hashlib.md5(b"payload").hexdigest())
    if kind == "ELF_COREDUMP":
        (trace,) = await with_token(standin).data("~/traces")
        assert trace["device"]["device_serial"] == "kit-1"


@pytest.mark.contract("O5.2")
@pytest.mark.parametrize("user", [True, False])
async def test_a_core_dump_is_uploaded_in_three_steps(standin: StandIn, user: bool) -> None:
    caller = with_token(standin) if user else with_project_key(standin)
    answer = await upload(
        caller,
        coredump("kit-5"),
        "COREDUMP",
        "~/coredumps" if user else "/api/v0/upload/coredump",
        {},
        "~/upload" if user else "/api/v0/upload",
    )
    assert answer.status_code == 202, answer.text
    (trace,) = await with_token(standin).data("~/traces")
    assert trace["device"]["device_serial"] == "kit-5"


@pytest.mark.contract("O5.3")
async def test_symbols_are_found_by_their_build_id_and_taken_once(standin: StandIn) -> None:
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
    sections = struct.pack("<IIIIIIIIII", 0, 7, 0, 0, 52, len(note), 0, 0, 4, 0)
    elf = b"\x7fELF\x01\x01\x01" + bytes(25) + struct.pack("<I", 52 + len(note)) + bytes(10)
    elf += struct.pack("<HHH", 40, 1, 0)
    elf += note + sections
    caller = with_token(standin)
    build_id = bytes(range(20)).hex()
    missing = await caller("HEAD", f"~/symbols-by-gnu-build-id/{build_id}", "files")
    assert missing.status_code == 404
    for status in (202, 409):
        answer = await upload(caller, elf, "SYMBOL_FILE", "~/symbols", {}, "~/upload")
        assert answer.status_code == status
    found = await caller("HEAD", f"~/symbols-by-gnu-build-id/{build_id}", "files")
    assert found.status_code == 200


@pytest.mark.contract("O5.3")
async def test_a_large_file_comes_in_parts(standin: StandIn) -> None:
    data = bytes(range(256)) * 70_000  # three parts
    caller = with_token(standin)
    body = {"kind": "OTA_PAYLOAD", "size": len(data)}
    prepared = (await caller("POST", "~/upload_multipart", "files", json=body)).json()["data"]
    urls = prepared["part_urls"]
    assert len(urls) == 3
    size = len(data) // len(urls)
    tags = []
    for index, url in enumerate(urls):
        end = len(data) if index == len(urls) - 1 else (index + 1) * size
        put = await standin.client.put(url, content=data[index * size : end])
        tags.append(put.headers["ETag"])
    named = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
        for number, tag in enumerate(tags, start=1)
    )
    xml = {"Content-Type": "application/xml"}
    whole = prepared["complete_upload_url"]
    wrong = f"<CompleteMultipartUpload>{named.replace(tags[1], tags[0])}</CompleteMultipartUpload>"
    assert error_of(await standin.client.post(whole, content=wrong, headers=xml))
    right = f"<CompleteMultipartUpload>{named}</CompleteMultipartUpload>"
    assert (await standin.client.post(whole, content=right, headers=xml)).status_code == 200
    commit = {
        "file": {"token": prepared["token"], "md5": hashlib.md5(data).hexdigest()},
        "software_version": {"version": "3.0.0", "software_type": "modem-app"},
        "hardware_version": "nrf9161dk",
    }
    answer = await caller("POST", "~/releases/ota_payload", "files", json=commit)
    assert answer.status_code == 202
    (artifact,) = (await caller.data("~/releases/3.0.0"))["artifacts"]
    assert (await standin.client.get(artifact["url"])).content == data


@pytest.mark.contract("O5.3")
async def test_an_upload_is_held_to_what_was_announced(standin: StandIn) -> None:
    caller = with_project_key(standin)
    prepare = {"kind": "MAR", "size": 5}
    prepared = (await caller("POST", "/api/v0/upload", json=prepare)).json()["data"]
    url, token = prepared["upload_url"], prepared["token"]
    for content in (b"four", b"sixsix"):
        assert error_of(await standin.client.put(url, content=content))["http_code"] == 400
    commit = {"file": {"token": token}, **IDENTITY}
    early = await caller("POST", "/api/v0/upload/mar", json=commit)
    assert error_of(early)["http_code"] == 404
    assert (await standin.client.put(url, content=b"fives")).status_code == 200
    for status, path, body in (
        (404, "/api/v0/upload/bugreport", {"file": {"token": token}}),
        (404, "/api/v0/upload/mar", {"file": {"token": "x" * 32}, **IDENTITY}),
        (400, "/api/v0/upload/mar", {"file": {"token": "made-up"}, **IDENTITY}),
        (400, "/api/v0/upload/mar", {"file": {"token": token, "md5": "0" * 32}, **IDENTITY}),
    ):
        assert error_of(await caller("POST", path, json=body))["http_code"] == status
    assert (await caller("POST", "/api/v0/upload/mar", json=commit)).status_code == 202
    again = await caller("POST", "/api/v0/upload/mar", json=commit)
    assert error_of(again)["http_code"] == 404


@pytest.mark.contract("O5.3")
async def test_an_upload_expires_and_is_bounded(standin: StandIn) -> None:
    caller = with_project_key(standin)
    answer = await caller("POST", "/api/v0/upload", json={"kind": "COREDUMP", "size": 10**9})
    assert "Uploaded file is too big" in error_of(answer)["message"]
    prepare = {"kind": "MAR", "size": 1}
    prepared = (await caller("POST", "/api/v0/upload", json=prepare)).json()["data"]
    standin.clock.advance(3700)
    late = await standin.client.put(prepared["upload_url"], content=b"x")
    assert error_of(late)["http_code"] == 404


@pytest.mark.contract("O5.3")
async def test_what_an_expired_upload_left_is_forgotten(standin: StandIn) -> None:
    caller = with_project_key(standin)
    prepare = {"kind": "MAR", "size": 1}
    prepared = (await caller("POST", "/api/v0/upload", json=prepare)).json()["data"]
    for content in (b"x", b"y"):
        sent = await standin.client.put(prepared["upload_url"], content=content)
        assert sent.status_code == 200
    names = ("uploads", "tokens", "blobs")
    tables = [standin.cloud.table(f"observability/{name}") for name in names]
    assert [len(table) for table in tables] == [1, 1, 1]
    standin.clock.advance(3700)
    await caller("POST", "/api/v0/upload", json=prepare)
    assert [len(table) for table in tables] == [1, 1, 0]


@pytest.mark.contract("O5.3")
async def test_a_compressed_file_is_stored_as_it_was(standin: StandIn) -> None:
    caller = with_project_key(standin)
    packed = gzip.compress(b"plain")
    prepare = {"kind": "MAR", "size": len(packed), "content_encoding": "gzip"}
    prepared = (await caller("POST", "/api/v0/upload", json=prepare)).json()["data"]
    put = await standin.client.put(
        prepared["upload_url"], content=packed, headers={"Content-Encoding": "gzip"}
    )
    assert put.status_code == 200
    body = {"file": {"token": prepared["token"]}, **IDENTITY}
    assert (await caller("POST", "/api/v0/upload/mar", json=body)).status_code == 202
    (stored,) = await with_token(standin).data("~/files")
    assert stored["md5"] == hashlib.md5(b"plain").hexdigest()


@pytest.mark.contract("O5.4")
async def test_the_latest_release_is_what_is_deployed_to_the_cohort(standin: StandIn) -> None:
    caller = with_project_key(standin)
    await make_release(standin, "1.0.0", b"old")
    await make_release(standin, "1.10.0", b"new", notes="better", extra_info={"k": "v"})
    await make_release(standin, "2.0.0", b"not deployed")
    nothing = await caller("GET", "/api/v0/releases/latest", params=LATEST)
    assert nothing.status_code == 204
    await deploy(standin, "1.0.0")
    await deploy(standin, "1.10.0")
    release = (await caller("GET", "/api/v0/releases/latest", params=LATEST)).json()
    assert (release["version"], release["notes"], release["extra_info"]) == (
        "1.10.0", "better", {"k": "v"},
    )  # fmt: skip
    (artifact,) = release["artifacts"]
    assert artifact["md5"] == hashlib.md5(b"new").hexdigest()
    assert (await standin.client.get(artifact["url"])).content == b"new"
    for current, status in (("1.9.0", 200), ("1.10.0", 204), ("2.0.0", 204), ("", 200)):
        query = LATEST | {"current_version": current}
        answer = await caller("GET", "/api/v0/releases/latest", params=query)
        assert answer.status_code == status, current
        assert status == 200 or answer.headers["memfault-reason"] == "latest"


@pytest.mark.contract("O5.4")
async def test_the_url_alone_is_told_to_small_devices(standin: StandIn) -> None:
    await make_release(standin, "1.0.0", b"image")
    await deploy(standin, "1.0.0")
    caller = with_project_key(standin)
    answer = await caller("GET", "/api/v0/releases/latest/url", params=LATEST)
    assert answer.headers["content-type"].startswith("text/plain")
    assert (await standin.client.get(answer.text)).content == b"image"


@pytest.mark.contract("O5.4")
async def test_the_latest_release_asks_for_what_it_needs(standin: StandIn) -> None:
    await make_release(standin, "1.0.0")
    await deploy(standin, "1.0.0")
    caller = with_project_key(standin)
    for query in (
        {}, {**LATEST, "device_serial": ""}, {**LATEST, "hardware_version": "unheard-of"},
        {**LATEST, "software_type": "unheard-of"},
    ):  # fmt: skip
        answer = await caller("GET", "/api/v0/releases/latest", params=query)
        assert error_of(answer)["http_code"] == 400, query
    for other in (Caller(standin, {}), with_token(standin)):
        answer = await other("GET", "/api/v0/releases/latest", params=LATEST)
        assert error_of(answer)["http_code"] == 403


@pytest.mark.contract("O5.4")
async def test_a_rollout_reaches_the_share_of_devices_that_it_says(standin: StandIn) -> None:
    await make_release(standin, "1.0.0")
    deployment = await deploy(standin, "1.0.0", type="staged_rollout", rollout_percent=30)
    assert deployment["status"] == "in_progress"
    caller, reached = with_project_key(standin), 0
    for number in range(200):
        query = LATEST | {"device_serial": f"kit-{number}"}
        answer = await caller("GET", "/api/v0/releases/latest", params=query)
        reached += answer.status_code == 200
    assert 30 < reached < 90
    assert (
        await with_token(standin)("DELETE", f"~/deployments/{deployment['id']}")
    ).status_code == 204
    answer = await caller("GET", "/api/v0/releases/latest", params=LATEST)
    assert answer.status_code == 204


@pytest.mark.contract("O5.4")
async def test_a_download_resumes_and_its_url_lives_six_hours(standin: StandIn) -> None:
    data = bytes(range(256)) * 8
    await make_release(standin, "1.0.0", data)
    release = await with_token(standin).data("~/releases/1.0.0")
    url, client = release["artifacts"][0]["url"], standin.client
    whole = await client.get(url)
    assert whole.headers["Accept-Ranges"] == "bytes"
    tag = whole.headers["ETag"]
    for wanted, first, last in (("bytes=100-199", 100, 199), ("bytes=2000-", 2000, 2047),
                                ("bytes=-48", 2000, 2047), ("bytes=0-99999", 0, 2047)):  # fmt: skip
        part = await client.get(url, headers={"Range": wanted, "If-Range": tag})
        assert part.status_code == 206
        assert part.headers["Content-Range"] == f"bytes {first}-{last}/2048"
        assert part.content == data[first : last + 1]
    changed = await client.get(url, headers={"Range": "bytes=5-", "If-Range": '"other"'})
    assert (changed.status_code, changed.content) == (200, data)
    beyond = await client.get(url, headers={"Range": "bytes=2048-"})
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, "bytes */2048")
    signature = parse_qs(urlsplit(url).query)["signature"][0]
    assert (await client.get(url.replace(signature, "0" * 64))).status_code == 403
    assert (await client.get(url.replace("expires=", "expires=9"))).status_code == 403
    standin.clock.advance(6 * 3600 + 1)
    assert (await client.get(url)).status_code == 403


async def test_what_was_stored_is_there_after_a_restart(tmp_path) -> None:
    from standin import running_standin

    state = tmp_path / "cloud.sqlite"
    async with running_standin(tmp_path / "a", state=state) as standin:
        await make_release(standin, "1.0.0", b"image")
        await with_project_key(standin)("POST", "/api/v0/events", json=[an_event()])
    async with running_standin(tmp_path / "b", state=state) as standin:
        caller = with_token(standin)
        assert len(await caller.data("~/events")) == 1
        release = await caller.data("~/releases/1.0.0")
        assert (await standin.client.get(release["artifacts"][0]["url"])).content == b"image"
