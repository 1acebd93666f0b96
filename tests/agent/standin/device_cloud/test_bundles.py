"""Firmware bundles at the stand-in (clause D1.4)."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from tests.support.cloud.standin import StandIn
from tests.support.fota.fota_calls import bundle, call, current, job, report, upload


@pytest.mark.contract("D1.4")
async def test_a_modem_image_is_offered_to_a_modem_of_any_age(standin: StandIn) -> None:
    for kind, expected in (("modem", "MODEM"), ("mdm_full", "MDM_FULL"), ("mcuboot", "BOOT")):
        files = {"a.bin": b"a" * 10} | ({"b.bin": b"b" * 10} if kind == "mcuboot" else {})
        job_id = await job(standin, await upload(standin, bundle(kind, "mfw_1.3.0", files)))
        document = (await current(standin)).json()["jobDocument"]
        assert document["firmwareType"] == expected
        assert len(document["path"].split(" ")) == len(files)
        await report(standin, job_id, "REJECTED")


async def test_a_bundle_names_its_files_and_has_no_empty_text(standin: StandIn) -> None:
    await upload(standin, bundle(files={"a.bin": b"a" * 10, "b.bin": b"b" * 5}))
    (item,) = (await call(standin, "GET", "/firmwares")).json()["items"]
    assert (item["filenames"], item["size"], item["name"]) == (["a.bin", "b.bin"], 15, "test")
    assert "description" not in item


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
        hostile_zip("a.bin", b""),
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
        "nothing in the file",
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
