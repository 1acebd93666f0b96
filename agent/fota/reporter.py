"""Reports a job: to the device cloud, which must get each result, and to observers here."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.errors import AgentError, EmptyAnswer, NotFound
from agent.fota import jobs
from agent.fota.journal import JobResult, Journal

if TYPE_CHECKING:
    from agent.fota.clock import AsyncClock


_STILL_OFFERED = "the cloud offers the job all the same: if that lasts, cancel it there"


class JobSource(Protocol):
    """The device cloud, for one device."""

    async def current(self) -> jobs.Execution | None:
        """Return the pending job, None where there is none."""

    async def report(self, job_id: str, status: jobs.JobStatus, detail: str) -> None:
        """Report a state. Raises NotFound (the job is not ours any more), AgentError (later)."""


class UpdateObserver:
    """Observes an update; this one ignores what it is called with."""

    def stage(self, text: str) -> None:
        """Handle the beginning of a stage; `text` is a sentence for a person."""

    def ended(self, result: JobResult) -> None:
        """Handle the end of a job, which the service may not have heard of yet."""
        self.stage(f"{result.status.value}: {result.detail}")

    def progress(self, what: str, done: int, total: int) -> None:
        """Handle progress: `done` of `total` units of `what`; 0 stands for not known."""

    async def overheard(self, data: bytes) -> None:
        """Handle bytes that the kit printed on the port that the installer had open."""


@dataclass(slots=True)
class JobReporter:
    """Reports the open job of a journal; a result that the cloud did not get is sent again."""

    cloud: JobSource
    journal: Journal
    clock: AsyncClock
    observer: UpdateObserver

    async def report(self, status: jobs.JobStatus, detail: str) -> None:
        """Report a state of the open job. Raises JobWithdrawn, AgentError (later)."""
        opened = self.journal.job
        reported = jobs.TRANSITIONS[opened.reported, status]
        try:
            await self.cloud.report(opened.job_id, reported, jobs.detail_text(detail))
        except NotFound as refused:
            # Not every 404 is the cloud's: a job that it still offers is lost to nobody.
            await self.check_offered()
            refused.hint = refused.hint or _STILL_OFFERED
            raise
        self.journal.update(reported=reported)

    async def end(self, status: jobs.JobStatus, detail: str, hint: str = "") -> JobResult:
        """Close the open job with its result, then report it. Raises AgentError."""
        opened = self.journal.job
        reported = jobs.TRANSITIONS[opened.reported, status]
        result = self._close(reported, jobs.detail_text(detail), hint, proof=opened.proof)
        await self.deliver()
        return self.journal.result_of(result.job_id) or result

    async def deliver(self) -> None:
        """Report the results that the cloud has not acknowledged. Raises AgentError."""
        for result in self.journal.results:
            if not result.delivered:
                await self._report_result(result)
                self.journal.delivered(result.job_id)

    async def report_again(self, job_id: str) -> JobResult | None:
        """Report the known result of a job that is offered again; the job is not repeated."""
        result = self.journal.result_of(job_id)
        if result is not None:
            await self._report_result(result)
        return result

    def close_withdrawn(self) -> JobResult:
        """Close the open job, which the cloud took back."""
        text = "the service took it back; nothing was installed"
        return self._close(jobs.JobStatus.CANCELLED, text, delivered=True)

    def _close(
        self,
        status: jobs.JobStatus,
        detail: str,
        hint: str = "",
        *,
        proof: str = "",
        delivered: bool = False,
    ) -> JobResult:
        result = JobResult(
            job_id=self.journal.job.job_id,
            status=status,
            detail=detail,
            at=self.clock.now().isoformat(timespec="seconds"),
            proof=proof,
            delivered=delivered,
            hint=hint,
        )
        self.journal.close(result)
        self.observer.ended(result)
        return result

    async def check_offered(self) -> None:
        """Raise JobWithdrawn if the cloud no longer offers the open job, or as cancelled.

        A failure proves nothing: it may be a proxy's, or another server's in the cloud's place.
        """
        try:
            offered = await self.cloud.current()
        except AgentError:
            return
        ours = self.journal.job.job_id
        if offered is None or offered.job_id != ours or offered.status is jobs.JobStatus.CANCELLED:
            raise jobs.JobWithdrawn

    async def _report_result(self, result: JobResult) -> None:
        # It was deleted or cancelled meanwhile. A refusal without a body may be a proxy's as well:
        # then the job is still offered, and its result is reported again.
        with contextlib.suppress(NotFound, EmptyAnswer):
            await self.cloud.report(result.job_id, result.status, result.detail)
