"""One pull from end to end: plan, report, download, prove, install, read back, report.

Each step is in the journal before it is done, so `UpdateRunner.pull` may be called again after a
kill anywhere and goes on from there.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.fota import jobs, verification
from agent.fota.allowed_hosts import AllowedHosts, checked_target, job_target
from agent.fota.clock import AsyncClock, LoopClock
from agent.fota.download.downloader import Downloader
from agent.fota.download.ranges import DownloadInterrupted
from agent.fota.fetch import ImageFetcher, package_of
from agent.fota.install import Installation, running_version
from agent.fota.installers.base import Installer, Package
from agent.fota.job_step import JobEvent, JobStep
from agent.fota.journal import MAX_DOWNLOAD_TRIES, JobResult, Journal, OpenJob
from agent.fota.kit_state import KitState
from agent.fota.releases import TRY_AGAIN, is_of_cloud, read_offered
from agent.fota.reporter import JobReporter, JobSource, UpdateObserver
from agent.fota.versions import same_version
from agent.http.download_targets import SourceRefused, Target
from at.firmware_gate import FirmwareVerdict
from at.protocol.errors import NoAnswer


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """The decision about the pending job; `refusal` is "" where the job is accepted."""

    execution: jobs.Execution
    job: jobs.Job | None
    targets: tuple[Target, ...]
    running: str
    refusal: str
    needed: str
    """What the image must prove: size-checked, intact or verified."""
    hint: str = ""
    """What lets it be accepted, "" where nothing here does."""


@dataclass(slots=True)
class Planner:
    """Decides about a job: nothing is changed, reported or downloaded.

    `verdict` returns that on the modem's firmware, read when it is first needed.
    """

    hosts: AllowedHosts
    trust: verification.TrustPolicy
    installer: Installer
    verdict: Callable[[], Awaitable[FirmwareVerdict]]

    async def plan(self, offered: jobs.Execution) -> UpdatePlan:
        """Return the plan of a job. Raises FirmwareRefused, AtError."""
        verdict = await self.verdict()
        try:
            job = read_offered(offered.job_id, offered.document)
        except jobs.MalformedJob as bad:
            verdict.require()
            return UpdatePlan(offered, None, (), "", str(bad), "")
        needed = verification.required_level(job.kind, self.trust).word
        if job.by_kit:
            needed = verification.CHECKED_BY_KIT
        targets: tuple[Target, ...] = ()
        running = refusal = hint = ""
        try:
            refusal = await self._kit_refusal(job, verdict)
            if not refusal:
                targets = self._targets(job)
                running = await running_version(self.installer, job.kind)
                verification.check_provable(job, self.trust)
                if job.by_kit and not running:
                    # Success is another version than the one before; it told one a moment ago.
                    raise NoAnswer(
                        f"the kit did not tell which {job.kind.value} it runs",
                        hint="is it still on? The job is kept, and the next look goes on with it",
                    )
                verification.check_downgrade(job, "", running, self.trust)
                verification.check_delta(job, running)
        except (SourceRefused, verification.NotProven) as refused:
            refusal, hint = str(refused), refused.hint
        return UpdatePlan(offered, job, targets, running, refusal, needed, hint)

    async def version_already_running(self, plan: UpdatePlan) -> str:
        """Return the running version if it is the job's and no image hash tells more, else ""."""
        job = plan.job
        if job is None or not plan.running or not job.version:
            return ""
        if not same_version(plan.running, job.version, in_full=True):
            return ""
        now = await self.installer.running(job.kind)
        return now.version if now is not None and not now.image_hash else ""

    def _targets(self, job: jobs.Job) -> tuple[Target, ...]:
        """Return where the files of a job are. Raises SourceRefused."""
        if not job.host:
            return tuple(checked_target(url, self.hosts) for url in job.paths)
        return tuple(job_target(job.host, path, self.hosts) for path in job.paths)

    async def _kit_refusal(self, job: jobs.Job, verdict: FirmwareVerdict) -> str:
        if job.kind not in jobs.MODEM_TYPES or not verdict.older:
            verdict.require()
        installer = self.installer
        too_old = verdict.text if verdict.older else ""
        reason = jobs.reject_reason(job, installer.name, installer.types, too_old)
        return reason or await installer.check(job)


class UpdateRunner:
    """Carries out the jobs of one kit, as its `sole_worker`. `close` it."""

    def __init__(
        self,
        cloud: JobSource,
        journal: Journal,
        planner: Planner,
        downloader: Downloader,
        *,
        clock: AsyncClock | None = None,
        observer: UpdateObserver | None = None,
        state: KitState | None = None,
    ) -> None:
        clock, observer = clock or LoopClock(), observer or UpdateObserver()
        self.journal = journal
        self._cloud = cloud
        self._planner = planner
        self._reporter = JobReporter(cloud, journal, clock, observer)
        self._fetcher = ImageFetcher(downloader, journal, planner.trust, observer)
        self._installation = Installation(
            planner.installer, journal, clock, observer, state or KitState()
        )

    async def close(self) -> None:
        """Close the connections to download hosts."""
        await self._fetcher.downloader.close()

    async def pull(self) -> JobResult | None:
        """Carry the pending job to its end; None where there is none.

        Raises AgentError where the cloud or the download host is out of reach, or another server
        answers in its place (call again later), at.AtError where the kit is (call again later as
        well), FirmwareRefused for the firmware gate.
        """
        done = await self._go_on_installing()
        await self._reporter.deliver()
        offered = await self._cloud.current()
        action = self._next_action(offered)
        if action is jobs.JobAction.DROP:
            self._reporter.close_withdrawn()
            action = self._next_action(offered)
        if action is jobs.JobAction.REPORT_AGAIN and offered is not None:
            return await self._reporter.report_again(offered.job_id)
        if action not in {jobs.JobAction.TAKE, jobs.JobAction.RESUME} or offered is None:
            return done
        plan = await self._planner.plan(offered)
        if action is jobs.JobAction.TAKE:
            self.journal.begin(
                OpenJob(
                    job_id=offered.job_id,
                    device_id=offered.device_id,
                    document=dict(offered.document),
                    reported=offered.status,
                )
            )
        elif offered.status is jobs.JobStatus.IN_PROGRESS:
            # The report may have arrived though its acknowledgement did not.
            self.journal.update(reported=jobs.JobStatus.IN_PROGRESS)
        return await self._carry_out(plan)

    async def plan(self) -> UpdatePlan | None:
        """Return what `pull` would do with the pending job; nothing is changed or reported."""
        offered = await self._cloud.current()
        return None if offered is None else await self._planner.plan(offered)

    async def abandon(self, detail: str) -> JobResult | None:
        """Give up the open job and report it FAILED; None where there is none."""
        if self.journal.open_job is None:
            return None
        begun = self.journal.job.reported is not jobs.JobStatus.QUEUED
        return await self._end(jobs.JobStatus.FAILED if begun else jobs.JobStatus.REJECTED, detail)

    def _next_action(self, offered: jobs.Execution | None) -> jobs.JobAction:
        opened = self.journal.open_job
        result = self.journal.result_of(offered.job_id) if offered is not None else None
        return jobs.next_action(
            offered,
            open_job=opened.job_id if opened else "",
            step=self.journal.step,
            # One that was taken back, and is offered all the same, was never carried out.
            finished=result is not None and result.status is not jobs.JobStatus.CANCELLED,
        )

    async def _carry_out(self, plan: UpdatePlan) -> JobResult | None:
        try:
            if plan.refusal or plan.job is None:
                raise jobs.JobEnded(jobs.JobStatus.REJECTED, plan.refusal, plan.hint)
            await self._begin(plan, plan.job)
            package = await self._fetch(plan.job, plan.targets)
            await self._reporter.check_offered()
            await self._installation.install(package)
        except jobs.JobEnded as ended:
            return await self._end(ended.status, ended.detail, hint=ended.hint)
        except jobs.JobWithdrawn:
            return self._reporter.close_withdrawn()
        except DownloadInterrupted as away:
            return await self._later(away)
        return await self._go_on_installing()

    async def _begin(self, plan: UpdatePlan, job: jobs.Job) -> None:
        open_job = self.journal.job
        if open_job.reported is jobs.JobStatus.QUEUED:
            text = f"download of {job.summary()} begins"
            await self._reporter.report(jobs.JobStatus.IN_PROGRESS, text)
        if open_job.step is JobStep.TAKEN:
            self.journal.advance(JobEvent.START, running_before=plan.running)
        if version := await self._planner.version_already_running(plan):
            raise jobs.JobEnded(
                jobs.JobStatus.SUCCEEDED, f"{version} already runs; nothing was installed"
            )

    async def _fetch(self, job: jobs.Job, targets: tuple[Target, ...]) -> Package:
        if job.by_kit:
            return self._fetcher.left_to_kit(job)
        return await self._fetcher.fetch(job, targets, check_offered=self._reporter.check_offered)

    async def _later(self, away: DownloadInterrupted) -> JobResult:
        """Leave the download to the next pull, a bounded number of times."""
        opened = self.journal.job
        if opened.download_tries + 1 < MAX_DOWNLOAD_TRIES:
            self.journal.update(download_tries=opened.download_tries + 1)
            raise away
        text = f"download given up after {MAX_DOWNLOAD_TRIES} tries: {away}"
        return await self._reporter.end(jobs.JobStatus.TIMED_OUT, text)

    async def _go_on_installing(self) -> JobResult | None:
        """Bring an install that has begun to its end; None where none has."""
        if not self.journal.step.in_install:
            return None
        opened = self.journal.job
        job = read_offered(opened.job_id, opened.document)
        package = package_of(self.journal, job)
        try:
            version = await self._installation.finish(package)
        except jobs.JobEnded as ended:
            return await self._end(ended.status, ended.detail, hint=ended.hint)
        return await self._end(jobs.JobStatus.SUCCEEDED, f"{version} runs", opened.proof)

    async def _end(
        self, status: jobs.JobStatus, detail: str, proof: str = "", hint: str = ""
    ) -> JobResult:
        """Put back what an install has changed, then end the job with how that went, too."""
        back = await self._installation.put_back()
        if hint:  # which is for the next time: this job is over
            of_cloud = is_of_cloud(self.journal.job.job_id)
            hint += f"; then {'have it offered again' if of_cloud else TRY_AGAIN}"
        text = "; ".join(filter(None, (detail, back, proof)))
        return await self._reporter.end(status, text, hint)
