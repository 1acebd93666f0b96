"""What a person would do in the service's portal, so that the kit has something to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from agent.call import Call, Request, Response, Scheme


class _Uploaded(msgspec.Struct):
    uris: list[str]


class _Created(msgspec.Struct, rename="camel"):
    job_id: str


@dataclass(frozen=True, slots=True)
class UploadFirmware(Call[str]):
    """Upload a bundle; the answer is its id, the second part of its address."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)

    packed: bytes

    def request(self) -> Request:
        """Return the POST."""
        headers = {"content-type": "application/zip"}
        return Request("POST", "/v1/firmwares", headers=headers, content=self.packed)

    def parse(self, response: Response) -> str:
        """Return the id of the bundle."""
        return response.decode(_Uploaded).uris[0].rstrip("/").split("/")[-2]


@dataclass(frozen=True, slots=True)
class CreateJob(Call[str]):
    """Have a bundle installed on a device; the answer is the id of the job."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)

    bundle_id: str
    device_id: str

    def request(self) -> Request:
        """Return the POST."""
        body: dict[str, Any] = {
            "bundleId": self.bundle_id,
            "deviceIds": [self.device_id],
            "autoApply": True,
        }
        return Request("POST", "/v1/fota-jobs", json=body)

    def parse(self, response: Response) -> str:
        """Return the id of the job."""
        return response.decode(_Created).job_id
