"""The pending job of one device at the device cloud: fetched, and its state reported."""

from __future__ import annotations

from dataclasses import dataclass

from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob, UpdateJob
from agent.fota.jobs import Execution, JobStatus, read_execution
from agent.http import HttpClient


@dataclass(frozen=True, slots=True)
class DeviceJobs:
    """The jobs of one device, over one client. `scheme` names one kind of credential."""

    client: HttpClient
    device_id: str
    scheme: Scheme | None = None

    async def current(self) -> Execution | None:
        """Return the pending job, None where there is none. Raises as HttpClient.send."""
        body = await self.client.send(FetchCurrentJob(self.device_id), scheme=self.scheme)
        return None if body is None else read_execution(body)

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        """Report a state. Raises as HttpClient.send."""
        call = UpdateJob(self.device_id, job_id, status.value, detail)
        await self.client.send(call, scheme=self.scheme)
