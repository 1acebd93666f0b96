"""Where updates come from: the jobs that the device cloud has for a device."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob, UpdateJob
from agent.fota.jobs import Execution, JobStatus, read_execution
from agent.fota.runner import require_allowed
from agent.http import HttpClient
from at.firmware_gate import FirmwareVerdict

AskVerdict = Callable[[], Awaitable[FirmwareVerdict]]
"""Asks a kit's modem for its firmware. Raises AtError."""


class DeviceJobs:
    """The jobs of one device, over one client, as far as its modem's firmware permits.

    A kit whose firmware is refused has no jobs, but for those that a user refuses for one that is
    older (clauses D1.3, D1.4): those go with the API key. All methods raise RefusedByRule for the
    others, at.AtError where the modem cannot be asked.
    """

    def __init__(self, client: HttpClient, device_id: str, ask_verdict: AskVerdict) -> None:
        self.device_id = device_id
        self._ask_verdict = ask_verdict
        self._verdict: FirmwareVerdict | None = None
        self._client = client.acting_as(kit_gate=self._require_allowed)

    async def verdict(self) -> FirmwareVerdict:
        """Return the verdict on the modem's firmware, which is asked for once."""
        if self._verdict is None:
            self._verdict = await self._ask_verdict()
        return self._verdict

    async def current(self) -> Execution | None:
        """Return the pending job, None where there is none. Raises as HttpClient.send."""
        call = FetchCurrentJob(self.device_id, to_refuse=await self._is_to_be_refused())
        body = await self._client.send(call)
        return None if body is None else read_execution(body)

    async def report(self, job_id: str, status: JobStatus, detail: str) -> None:
        """Report a state. Raises as HttpClient.send."""
        to_refuse = await self._is_to_be_refused()
        await self._client.send(
            UpdateJob(self.device_id, job_id, status.value, detail, to_refuse=to_refuse)
        )

    async def _is_to_be_refused(self) -> bool:
        """Return whether a job can only be refused, by a user. Raises RefusedByRule if not even."""
        verdict = await self.verdict()
        if verdict.older and Scheme.API_KEY in self._client.keyring:
            return True
        require_allowed(verdict)
        return False

    async def _require_allowed(self) -> None:
        (await self.verdict()).require()
