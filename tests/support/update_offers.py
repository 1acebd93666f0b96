"""A device of the stand-in that is offered updates, and a profile for the agent that takes them."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from typing import TYPE_CHECKING

from running_agent import kit_keys, write_profile
from signed_images import public_pem, signing_key

if TYPE_CHECKING:
    from pathlib import Path

    from standin import StandIn

DEVICE = "bench-kit-1"
PREFER_API_KEY = '[profiles.bench.credentials]\nprefer = "api-key"'


def device_profile(
    folder: Path, standin: StandIn, extra: str = "", **keys: str | float
) -> dict[str, str]:
    """Write a profile for one kit that is this device; return the environment for it.

    `keys` are further keys of the kit's part.
    """
    ready = {
        "urls": standin.urls,
        "organization": standin.organization,
        "project": standin.project,
        "credentials": standin.credentials,
    }
    kits = {"kit": {**kit_keys(folder), "device_id": DEVICE, **keys}}
    return write_profile(folder, ready, kits, f"{PREFER_API_KEY}\n{extra}")


async def onboard_device(standin: StandIn) -> None:
    """Make the device known to the device cloud."""
    row = f'{DEVICE},,,APP|MODEM,"{public_pem(signing_key("ecdsa")).decode()}"\n'
    headers = {**standin.bearer("api_key"), "content-type": "text/csv"}
    await standin.client.post("/v1/devices", content=row.encode(), headers=headers)
    async with asyncio.timeout(60):
        while True:
            found = await standin.client.get(
                f"/v1/devices/{DEVICE}", headers=standin.bearer("api_key")
            )
            if found.status_code == 200:
                return


async def offer_update(
    standin: StandIn, image: bytes, version: str, kind: str = "application"
) -> str:
    """Upload a bundle and offer it to the device; return the job's id."""
    manifest = {
        "name": "test",
        "fwversion": version,
        "format-version": 1,
        "files": [{"file": "update.bin", "type": kind, "size": len(image)}],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("update.bin", image)
        archive.writestr("manifest.json", json.dumps(manifest))
    headers = standin.bearer("api_key")
    made = await standin.client.post(
        "/v1/firmwares",
        content=packed.getvalue(),
        headers={**headers, "content-type": "application/zip"},
    )
    bundle = made.json()["uris"][0].split("/")[-2]
    body = {"bundleId": bundle, "deviceIds": [DEVICE]}
    made = await standin.client.post("/v1/fota-jobs", json=body, headers=headers)
    return str(made.json()["jobId"])


async def job_status(standin: StandIn, job_id: str) -> str:
    """Return the state that the device cloud has for a job."""
    path = f"/v1/fota-job-executions/{DEVICE}/{job_id}"
    found = await standin.client.get(path, headers=standin.bearer("api_key"))
    return str(found.json()["status"])
