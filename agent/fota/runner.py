"""One pull from end to end: fetch, decide, report, download, prove, install, read back, report.

It wires what the other files decide and do. Each step is in the journal before it is done, so
`pull` may be called again after a kill anywhere and goes on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.errors import ServiceRefusal
from agent.fota import jobs
from agent.fota.download.ranges import TryAgain
from agent.fota.fetching import fetch
from agent.fota.image import same_version
from agent.fota.installing import finish, install
from agent.fota.jobs import Move, Remembered, Status
from agent.fota.journal import MAX_DOWNLOAD_TRIES, OpenJob, Result, Step
from agent.fota.planning import plan_for
from agent.fota.reporting import deliver, drop, end, report, report_again, still_ours
from agent.fota.tools import Decided, JobGone, Tools, shown

if TYPE_CHECKING:
    from agent.fota.jobs import Execution
    from agent.fota.planning import Plan


class Runner(Tools):
    """Carries out the jobs of one kit."""

    __slots__ = ()

    async def pull(self) -> Result | None:
        """Carry the pending job to its end; None where there is none.

        Raises Unavailable where the cloud or the download host is out of reach (call again
        later), at.AtError where the kit is (the same), RefusedByRule for the firmware gate.
        """
        done = await self._go_on_installing()
        await deliver(self)
        offered = await self.cloud.current()
        move = self._move(offered)
        if move is Move.DROP:
            drop(self)
            move = self._move(offered)
        if move is Move.REPORT_AGAIN and offered is not None:
            return await report_again(self, offered.job_id)
        if move not in {Move.TAKE, Move.RESUME} or offered is None:
            return done
        plan = await plan_for(self, offered)
        if move is Move.TAKE:
            self.journal.begin(
                OpenJob(
                    job_id=offered.job_id,
                    device_id=offered.device_id,
                    document=dict(offered.document),
                    reported=offered.status,
                )
            )
        elif offered.status is Status.IN_PROGRESS:
            # The report may have arrived though its acknowledgement did not.
            self.journal.update(reported=Status.IN_PROGRESS)
        return await self._carry_out(plan)

    async def plan(self) -> Plan | None:
        """Return what `pull` would do with the pending job; nothing is changed or reported."""
        offered = await self.cloud.current()
        return None if offered is None else await plan_for(self, offered)

    async def abandon(self, detail: str) -> Result | None:
        """Give up the open job and report it FAILED; None where there is none."""
        job = self.journal.open_job
        if job is None:
            return None
        if job.reported is Status.QUEUED:
            return await end(self, Status.REJECTED, detail)
        return await end(self, Status.FAILED, detail)

    def _move(self, offered: Execution | None) -> Move:
        opened = self.journal.open_job
        return jobs.next_move(
            offered,
            open_job=opened.job_id if opened else "",
            remembered=opened.remembered if opened else Remembered.NOTHING,
            finished=offered is not None and self.journal.result_of(offered.job_id) is not None,
        )

    async def _carry_out(self, plan: Plan) -> Result | None:
        try:
            if plan.refusal or plan.job is None:
                raise Decided(Status.REJECTED, plan.refusal)
            await self._begin(plan)
            package = await fetch(self, plan.job, plan.targets)
            await still_ours(self)
            await install(self, package)
        except Decided as decided:
            return await end(self, decided.status, decided.detail)
        except (JobGone, ServiceRefusal):
            return drop(self)
        except TryAgain as away:
            return await self._later(away)
        return await self._go_on_installing()

    async def _begin(self, plan: Plan) -> None:
        open_job, job = self.journal.open_job, plan.job
        assert open_job is not None
        assert job is not None
        if open_job.reported is Status.QUEUED:
            await report(self, Status.IN_PROGRESS, f"download of {shown(job)} begins")
        if open_job.step is Step.TAKEN:
            self.journal.update(step=Step.STARTED, running_before=plan.running)
        if plan.running and job.version and same_version(plan.running, job.version):
            now = await self.installer.running(job.kind)
            if now is not None and not now.image_hash:
                raise Decided(
                    Status.SUCCEEDED, f"{now.version} already runs; nothing was installed"
                )

    async def _later(self, away: TryAgain) -> Result:
        """Leave the download for the next pull, unless it was left often enough."""
        opened = self.journal.open_job
        assert opened is not None
        if opened.download_tries + 1 < MAX_DOWNLOAD_TRIES:
            self.journal.update(download_tries=opened.download_tries + 1)
            raise away
        text = f"download given up after {MAX_DOWNLOAD_TRIES} tries: {away}"
        return await end(self, Status.TIMED_OUT, text)

    async def _go_on_installing(self) -> Result | None:
        """Bring an install that has begun to its end; None where none has."""
        opened = self.journal.open_job
        if opened is None or opened.remembered is not Remembered.INSTALLING:
            return None
        try:
            version = await finish(self, opened)
        except Decided as decided:
            return await end(self, decided.status, decided.detail)
        return await end(self, Status.SUCCEEDED, f"{version} runs; {opened.proof}")
