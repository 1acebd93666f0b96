"""FOTA at the stand-in, as users and devices call it."""

import io
import json
import zipfile

from tests.support.cloud.device_api import GATEWAY, GENERIC, Api
from tests.support.cloud.standin import StandIn

DEVICE, OTHER = GENERIC, GATEWAY
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


async def call(standin: StandIn, method: str, path: str, **given):
    return await Api(standin).call(method, path, **given)


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
