"""FOTA job executions of one device: the pending one, and what became of it (clause D9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from agent.call import Call, Request, Response, Scheme
from agent.cloud.conventions import path_segment
from agent.errors import BadAnswer, NotFound

# Either scheme of the two that the operation declares; a proxy has a service key for FOTA.
_SCHEMES = (Scheme.API_KEY, Scheme.DEVICE_JWT, Scheme.SERVICE_JWT)
_DEVICE_UNKNOWN = 40410


@dataclass(frozen=True, slots=True)
class FetchCurrentJob(Call["Mapping[str, Any] | None"]):
    """FetchCurrentPendingFOTAJobExecution: the oldest that waits or is in progress, or None."""

    schemes: ClassVar[tuple[Scheme, ...]] = _SCHEMES
    accepts: ClassVar[frozenset[int]] = frozenset({404})
    service: ClassVar[str] = "fota"

    device_id: str
    firmware_type: str = ""

    def request(self) -> Request:
        """Return what to send."""
        query = (("firmwareType", self.firmware_type),) if self.firmware_type else ()
        return Request("GET", f"{_executions(self.device_id)}/current", query=query)

    def parse(self, response: Response) -> Mapping[str, Any] | None:
        """Return the execution as sent. A 404 says "no job", unless its code names the device."""
        body = _decoded(response)
        if response.status == 404:
            if isinstance(body, dict) and body.get("code") == _DEVICE_UNKNOWN:
                raise NotFound(
                    f"the device cloud does not know the device {self.device_id}",
                    hint="only an onboarded device gets FOTA jobs: `cellagent provision`",
                    status=404,
                    code=_DEVICE_UNKNOWN,
                )
            return None
        if not isinstance(body, dict):
            raise BadAnswer("the pending FOTA job is not a JSON object")
        return body

    def serves(self) -> str:
        """Return the device that the call is made for."""
        return self.device_id


@dataclass(frozen=True, slots=True)
class UpdateJob(Call[None]):
    """UpdateFOTAJobExecution: what became of a job. The same final state twice is no error."""

    schemes: ClassVar[tuple[Scheme, ...]] = _SCHEMES
    service: ClassVar[str] = "fota"

    device_id: str
    job_id: str
    status: str
    details: str = ""

    def request(self) -> Request:
        """Return what to send."""
        body = {"status": self.status}
        if self.details:
            body["details"] = self.details
        path = f"{_executions(self.device_id)}/{path_segment(self.job_id, 'a job id')}"
        return Request("PATCH", path, json=body)

    def parse(self, response: Response) -> None:
        """Rely on no reply body."""

    def serves(self) -> str:
        """Return the device that the call is made for."""
        return self.device_id


def _executions(device_id: str) -> str:
    return f"/v1/fota-job-executions/{path_segment(device_id, 'a device id')}"


def _decoded(response: Response) -> Any:
    try:
        return msgspec.json.decode(response.content)
    except (msgspec.DecodeError, RecursionError):
        if response.status == 404:
            return None
        raise BadAnswer("the pending FOTA job is not JSON") from None
