"""A device of the stand-in that is offered updates, and a profile for the agent that takes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.cloud.device_api import Api
from tests.support.commands.running_agent import kit_keys, write_profile
from tests.support.fota import fota_calls
from tests.support.fota.signed_images import public_pem, signing_key

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cloud.standin import StandIn

DEVICE = "bench-kit-1"
PREFER_API_KEY = '[profiles.bench.credentials]\nprefer = "api-key"'


def device_profile(
    folder: Path, standin: StandIn, extra: str = "", **keys: str | float
) -> dict[str, str]:
    """Write a profile for one kit that is this device; return the environment for it.

    `keys` are further keys of the kit's part.
    """
    kits = {"kit": {**kit_keys(folder), "device_id": DEVICE, **keys}}
    return write_profile(folder, standin.ready, kits, f"{PREFER_API_KEY}\n{extra}")


async def onboard_device(standin: StandIn, device: str = DEVICE) -> None:
    """Make the device known to the device cloud."""
    row = f'{device},,,APP|MODEM,"{public_pem(signing_key("ecdsa")).decode()}"\n'
    api, headers = Api(standin), {"content-type": "text/csv"}
    await api.call("POST", "/devices", content=row.encode(), headers=headers)
    async with asyncio.timeout(60):
        while (await api.call("GET", f"/devices/{device}")).status_code != 200:
            pass


async def offer_update(
    standin: StandIn, image: bytes, version: str, kind: str = "application", *, device: str = DEVICE
) -> str:
    """Upload a bundle and offer it to the device; return the job's id."""
    packed = fota_calls.bundle(kind, version, {"update.bin": image})
    bundle = await fota_calls.upload(standin, packed)
    return await fota_calls.job(standin, bundle, deviceIds=[device])


async def job_status(standin: StandIn, job_id: str, device: str = DEVICE) -> str:
    """Return the state that the device cloud has for a job."""
    found = await Api(standin).get(f"/fota-job-executions/{device}/{job_id}")
    return str(found["status"])
