"""A bundle is one that the service accepts; the calls that upload it and offer it to devices."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from agent.call import Response
from agent.cloud.firmware import CreateJob, UploadFirmware, bundle
from agent.demo.firmware import mcuboot_image
from agent.errors import BadAnswer


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
