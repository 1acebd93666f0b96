"""The bundle of the demonstration is one that the service and the kit accept."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from agent.call import Response
from agent.demo.firmware import CreateJob, UploadFirmware, bundle, mcuboot_image
from at.virtual.families.firmware_update import image_version


@pytest.mark.parametrize("size", [0, 1, 14, 15, 16, 4096])
def test_the_kit_accepts_an_image_of_any_size(size: int) -> None:
    image = mcuboot_image((2, 0, 1), size)
    assert image_version(image) == "2.0.1"
    assert len(image) == 32 + size + 40


def test_the_manifest_names_the_image_with_its_size() -> None:
    image = mcuboot_image((2, 0, 1), 100)
    with zipfile.ZipFile(io.BytesIO(bundle(image, "2.0.1"))) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        (file,) = manifest["files"]
        assert archive.read(file["file"]) == image
    assert (manifest["fwversion"], file["size"]) == ("2.0.1", len(image))


def test_the_id_of_the_bundle_comes_out_of_its_address() -> None:
    body = b'{"uris": ["https://host/v1/firmwares/APP*1234*v1/app_update.bin"]}'
    response = Response(200, {}, body)
    assert UploadFirmware(b"").parse(response) == "APP*1234*v1"


def test_the_job_installs_the_bundle_on_the_one_device() -> None:
    request = CreateJob("APP*1", "nrf-1").request()
    assert (request.method, request.path) == ("POST", "/v1/fota-jobs")
    assert request.json == {"bundleId": "APP*1", "deviceIds": ["nrf-1"], "autoApply": True}
