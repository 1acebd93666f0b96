"""Firmware that devices are to be offered: bundles of images, and the jobs that install them."""

import io
import json
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from agent.call import Call, Request, Response, Scheme, StatusCall
from agent.cloud.conventions import missing, path_segment
from agent.errors import BadAnswer, UsageError

# In the manifest of a bundle, as the service documents it.
_VERSION = re.compile(r"[a-zA-Z0-9._-]{1,60}")


def bundle(image: bytes, version: str, *, name: str, file_type: str = "application") -> bytes:
    """Return the zip file that the service accepts: the image and its manifest.

    `file_type` is a word of the manifest: "application" or "mcuboot". Raises UsageError for a
    version that the service would refuse.
    """
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is no version: 1 to 60 letters, digits, dots, _ and -")
    manifest = {
        "name": name,
        "fwversion": version,
        "format-version": 1,
        "files": [{"file": "app_update.bin", "type": file_type, "size": len(image)}],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("app_update.bin", image)
    return packed.getvalue()


class _Uploaded(msgspec.Struct):
    uris: list[str]


class _Created(msgspec.Struct, rename="camel"):
    job_id: str


@dataclass(frozen=True, slots=True)
class UploadFirmware(Call[str]):
    """Upload a bundle; the result is its id, the last but one segment of a file's address."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)
    # The same bytes once more are another bundle.
    repeatable: ClassVar[bool] = False

    packed: bytes

    def request(self) -> Request:
        """Return the POST."""
        headers = {"content-type": "application/zip"}
        return Request("POST", "/v1/firmwares", headers=headers, content=self.packed)

    def parse(self, response: Response) -> str:
        """Return the id of the bundle. Raises BadAnswer."""
        (uri, *_) = response.decode(_Uploaded).uris or [""]
        path, _, _file = uri.rstrip("/").rpartition("/")
        bundle_id = path.rpartition("/")[2]
        if not bundle_id:
            raise BadAnswer("the service names no file of the bundle that was sent")
        return bundle_id


@dataclass(frozen=True, slots=True)
class DeleteFirmware(StatusCall):
    """Delete a bundle, which no job offers."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)

    bundle_id: str

    def request(self) -> Request:
        """Return the DELETE."""
        return Request("DELETE", f"/v1/firmwares/{path_segment(self.bundle_id, 'a bundle id')}")


@dataclass(frozen=True, slots=True)
class CreateJob(Call[str]):
    """Create a job that installs a bundle on devices, or on those with one of the tags.

    The result is the id of the job.
    """

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)
    # A second job would update the devices twice.
    repeatable: ClassVar[bool] = False

    bundle_id: str
    device_ids: Sequence[str] = ()
    tags: Sequence[str] = ()

    def request(self) -> Request:
        """Return the POST."""
        body: dict[str, object] = {
            "bundleId": self.bundle_id,
            **({"deviceIds": list(self.device_ids)} if self.device_ids else {}),
            **({"tags": list(self.tags)} if self.tags else {}),
            "autoApply": True,
        }
        return Request("POST", "/v1/fota-jobs", json=body)

    def parse(self, response: Response) -> str:
        """Return the id of the job."""
        return response.decode(_Created).job_id

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Return where devices are listed."""
        return missing(status)
