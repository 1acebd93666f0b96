"""An upload whose bytes come after its commit."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from agent.standin.observability.file_storage import BLOBS, UPLOADS
from tests.support.cloud.raw_requests import begin, finish
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("O5.3")
async def test_an_upload_that_was_committed_takes_no_bytes_that_come_later(
    standin: StandIn,
) -> None:
    key = {"Service-Project-Key": standin.credentials["project_key"]}
    told = {"kind": "ANDROID_BUG_REPORT", "size": 5}
    prepared = (await standin.client.post("/api/v0/upload", json=told, headers=key)).json()["data"]
    path = urlsplit(prepared["upload_url"]).path
    late = await begin(standin, "PUT", path, b"later")
    assert (await standin.client.put(path, content=b"first")).status_code == 200
    commit = {"file": {"token": prepared["token"]}}
    answer = await standin.client.post("/api/v0/upload/bugreport", json=commit, headers=key)
    assert answer.status_code == 202
    assert await finish(late, b"later") == 404
    assert len(standin.cloud.table(UPLOADS)) == 0
    assert len(standin.cloud.table(BLOBS)) == 1
