"""Files are stored and downloaded through signed URLs that expire: clause O5.3."""

from __future__ import annotations

import gzip
import hashlib
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from agent.standin.observability.file_storage import (
    BLOBS,
    PARTS,
    TOKENS,
    UPLOADS,
    Upload,
    UploadState,
)
from tests.support.cloud.observability import (
    IDENTITY,
    an_event,
    error_of,
    make_release,
    with_project_key,
    with_token,
)
from tests.support.cloud.standin import StandIn


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
    for _ in range(2):  # once more after a lost answer
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
@pytest.mark.parametrize(("sent", "stored"), [((), 0), ((b"x",), 1), ((b"x", b"y"), 1)])
async def test_what_an_expired_upload_left_is_forgotten(
    standin: StandIn, sent: tuple[bytes, ...], stored: int
) -> None:
    caller = with_project_key(standin)
    prepare = {"kind": "MAR", "size": 1}
    prepared = (await caller("POST", "/api/v0/upload", json=prepare)).json()["data"]
    for content in sent:
        answer = await standin.client.put(prepared["upload_url"], content=content)
        assert answer.status_code == 200
    tables = [standin.cloud.table(one) for one in (UPLOADS, TOKENS, BLOBS)]
    assert [len(table) for table in tables] == [1, 1, stored]
    [upload] = standin.cloud.table(UPLOADS).values()
    standin.clock.advance(3700)
    await caller("POST", "/api/v0/upload", json=prepare)
    assert [len(table) for table in tables] == [1, 1, 0]
    assert upload.state is UploadState.EXPIRED


@pytest.mark.contract("O5.3")
async def test_a_part_that_nobody_named_is_forgotten_with_the_commit(standin: StandIn) -> None:
    caller, data = with_token(standin), b"only one part is as large as this"
    body = {"kind": "OTA_PAYLOAD", "size": 9 * 1024 * 1024}
    prepared = (await caller("POST", "~/upload_multipart", "files", json=body)).json()["data"]
    [upload] = standin.cloud.table(UPLOADS).values()
    upload.size = len(data)
    first, second = [
        (await standin.client.put(url, content=data)).headers["ETag"]
        for url in prepared["part_urls"]
    ]
    assert first == second
    named = f"<Part><PartNumber>1</PartNumber><ETag>{first}</ETag></Part>"
    done = await standin.client.post(prepared["complete_upload_url"], content=named)
    assert done.status_code == 200
    commit = {
        "file": {"token": prepared["token"]},
        "software_version": {"version": "3.0.0", "software_type": "modem-app"},
        "hardware_version": "nrf9161dk",
    }
    answer = await caller("POST", "~/releases/ota_payload", "files", json=commit)
    assert answer.status_code == 202
    assert len(standin.cloud.table(PARTS)) == 0
    assert upload.state is UploadState.COMMITTED


def test_an_upload_of_0_1_0_is_in_the_state_that_its_bytes_tell() -> None:
    written = {"project": "acme/kits", "kind": "MAR", "size": 1, "content_encoding": None,
               "created": 1.0, "parts": 0, "token": "t"}  # fmt: skip
    states = [msgspec.convert(written | {"blob": blob}, Upload).state for blob in (None, "b")]
    assert states == [UploadState.PREPARED, UploadState.STORED]


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
    from tests.support.cloud.standin import running_standin

    state = tmp_path / "cloud.sqlite"
    async with running_standin(tmp_path / "a", state=state) as standin:
        await make_release(standin, "1.0.0", b"image")
        await with_project_key(standin)("POST", "/api/v0/events", json=[an_event()])
    async with running_standin(tmp_path / "b", state=state) as standin:
        caller = with_token(standin)
        assert len(await caller.data("~/events")) == 1
        release = await caller.data("~/releases/1.0.0")
        assert (await standin.client.get(release["artifacts"][0]["url"])).content == b"image"
