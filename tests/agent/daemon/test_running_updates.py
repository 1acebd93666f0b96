"""Updates, places and credentials, as the running agent meets them."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from running_agent import agent_on, concern_of, kit_keys, virtual_kit, write_profile
from signed_images import public_pem, signed_image, signing_key

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

DEVICE = "bench-kit-1"
PREFER_API_KEY = '[profiles.bench.credentials]\nprefer = "api-key"'


def written(folder: Path, standin: Any) -> dict[str, str]:
    ready = {
        "urls": standin.urls,
        "organization": standin.organization,
        "project": standin.project,
        "credentials": standin.credentials,
    }
    kits = {"kit": {**kit_keys(folder), "device_id": DEVICE}}
    return write_profile(folder, ready, kits, PREFER_API_KEY)


async def onboard(standin: Any) -> None:
    row = f'{DEVICE},,,APP|MODEM,"{public_pem(signing_key("ecdsa")).decode()}"\n'
    headers = {**standin.bearer("api_key"), "content-type": "text/csv"}
    await standin.client.post("/v1/devices", content=row.encode(), headers=headers)
    async with asyncio.timeout(10):
        while True:
            found = await standin.client.get(
                f"/v1/devices/{DEVICE}", headers=standin.bearer("api_key")
            )
            if found.status_code == 200:
                return


async def offer(standin: Any, image: bytes, version: str) -> str:
    manifest = {
        "name": "test",
        "fwversion": version,
        "format-version": 1,
        "files": [{"file": "update.bin", "type": "application", "size": len(image)}],
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


async def executed(standin: Any, job_id: str) -> str:
    path = f"/v1/fota-job-executions/{DEVICE}/{job_id}"
    found = await standin.client.get(path, headers=standin.bearer("api_key"))
    return str(found.json()["status"])


@pytest.mark.contract("C6")
async def test_a_pending_update_is_carried_out_and_the_link_outlives_the_restart(
    standin: Any, tmp_path: Path
):
    await onboard(standin)
    image = signed_image(tmp_path, "2.0.1", body=bytes(range(256)) * 300).read_bytes()
    job_id = await offer(standin, image, "v2.0.1")
    kit = await virtual_kit(tmp_path, "kit", "--dialect", "serial-modem")
    async with agent_on(written(tmp_path, standin)) as agent:
        status = await agent.until_status(
            lambda status: "last" in concern_of(status, "kit", "fota")
        )
        last = concern_of(status, "kit", "fota")["last"]
        assert (last["job"], last["status"]) == (job_id, "SUCCEEDED"), agent.log
        assert await executed(standin, job_id) == "SUCCEEDED"
        port = str(tmp_path / "kit")
        done = await agent.run("modem", "at", "AT+CGMR", "--port", port, "--json")
        assert done.code == 0, done.err
        assert await agent.stop() == 0
    stages = [json.loads(line)["message"] for line in agent.log if '"fota"' in line]
    assert any("installing" in stage for stage in stages)
    await kit.end()


async def test_a_place_is_reported_as_a_device_message_and_once(standin: Any, tmp_path: Path):
    await onboard(standin)
    kit = await virtual_kit(tmp_path)
    where = written(tmp_path, standin)
    query = {"deviceId": DEVICE, "appId": "GROUND_FIX"}
    headers = standin.bearer("api_key")

    async def messages() -> list[dict[str, Any]]:
        found = await standin.client.get("/v1/messages", params=query, headers=headers)
        return [item["message"] for item in found.json()["items"]]

    async with agent_on(where) as agent:
        await agent.until("kit", "location", "well")
        (told,) = await messages()
        assert await agent.stop() == 0
    async with agent_on(where) as agent:
        await agent.until("kit", "location", "well")
        assert await messages() == [told], "the kit is where it was"
    assert {"lat", "lon", "uncertainty"} <= set(told["data"])
    await kit.end()


async def test_a_refused_credential_is_told_once_and_a_new_one_is_taken_at_reload(
    standin: Any, tmp_path: Path
):
    await onboard(standin)
    kit = await virtual_kit(tmp_path)
    where = written(tmp_path, standin)
    good = where.pop("CELLAGENT_API_KEY")
    secrets = tmp_path / "secrets.toml"
    secrets.touch(0o600)
    secrets.write_text('[bench]\napi_key = "a-key-that-was-revoked"\n')
    async with agent_on(where) as agent:
        told = await agent.until("kit", "fota", "trouble")
        assert "401" in told["trouble"]
        assert (await agent.run("reload")).code == 0
        status = json.loads((await agent.run("status", "--json")).out)
        assert concern_of(status, "kit", "link")["state"] == "well"
        secrets.write_text(f'[bench]\napi_key = "{good}"\n')
        assert (await agent.run("reload")).code == 0
        await agent.until("kit", "fota", "well")
        await agent.stop()
    refused = [
        json.loads(line)["message"] for line in agent.log if '"fota"' in line and "401" in line
    ]
    assert len(refused) == 1, agent.log
    assert good not in "\n".join(agent.log)
    await kit.end()
