"""A bundle is one that the service accepts; the calls that upload it and offer it to devices."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from agent.call import Response
from agent.cloud.firmware import CreateJob, UploadFirmware, bundle
from agent.demo.firmware import mcuboot_image
from agent.errors import BadAnswer, Unreachable
from agent.standin.device_cloud.seed import GENERIC
from tests.support.cloud.standin import running_standin
from tests.support.cloud.standin_clients import api_key, client_with


def test_the_manifest_names_the_image_with_its_size() -> None:
    image = mcuboot_image((2, 0, 1), 100)
    with zipfile.ZipFile(io.BytesIO(bundle(image, "2.0.1", name="test"))) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        (file,) = manifest["files"]
        assert archive.read(file["file"]) == image
    assert (manifest["fwversion"], file["size"]) == ("2.0.1", len(image))


@pytest.mark.parametrize(
    "uri", ["https://host/team/APP*1234*v1/app.bin", "team/APP*1234*v1/app.bin", "APP*1234*v1/a/"]
)
def test_the_id_of_the_bundle_comes_out_of_the_address_of_a_file(uri: str) -> None:
    response = Response(202, {}, json.dumps({"uris": [uri, "more/of/it"], "new": 1}).encode())
    assert UploadFirmware(b"").parse(response) == "APP*1234*v1"


@pytest.mark.parametrize("uris", [[], [""], ["app.bin"], ["/app.bin"]])
def test_an_answer_without_the_address_of_a_file_is_told(uris: list[str]) -> None:
    with pytest.raises(BadAnswer, match="names no file"):
        UploadFirmware(b"").parse(Response(202, {}, json.dumps({"uris": uris}).encode()))


def test_the_job_installs_the_bundle_on_the_one_device() -> None:
    request = CreateJob("APP*1", ["nrf-1"]).request()
    assert (request.method, request.path) == ("POST", "/v1/fota-jobs")
    assert request.json == {"bundleId": "APP*1", "deviceIds": ["nrf-1"], "autoApply": True}


@pytest.mark.parametrize("lost", ["firmwares", "fota-jobs"])
async def test_what_was_made_though_its_answer_was_lost_is_not_made_twice(
    tmp_path: Path, lost: str
) -> None:
    image = bundle(mcuboot_image((2, 0, 1), 100), "2.0.1", name="test")
    async with running_standin(tmp_path) as standin:
        async with client_with(standin, api_key(standin), jitter=lambda: 0.0) as client:
            bundle_id = await client.send(UploadFirmware(image))
            job = CreateJob(bundle_id, [GENERIC])
            await standin.control({"faults": [f"connection-reset=after*1@/v1/{lost}"]})
            with pytest.raises(Unreachable):
                await client.send(UploadFirmware(image) if lost == "firmwares" else job)
        await standin.control({"faults": []})
        made = await standin.client.get(f"/v1/{lost}", headers=standin.bearer("api_key"))
    assert made.json()["total"] == (2 if lost == "firmwares" else 1)
