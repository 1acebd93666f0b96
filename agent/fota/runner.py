"""One pull from end to end: fetch, decide, report, download, prove, install, read back, report.

It wires what the other files decide. Everything it touches is an argument: the device cloud, the
installer, the journal, the downloader, the clock. Each step is in the journal before it is done,
so `pull` may be called again after a kill anywhere and goes on from there.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.errors import RefusedByRule, ServiceRefusal, Unavailable
from agent.fota import jobs, verification
from agent.fota.addresses import job_target
from agent.fota.download import TooSlow, Wanted
from agent.fota.image import hash_of
from agent.fota.installers.base import InstallFailed, Package, runs
from agent.fota.jobs import KitFacts, MalformedJob, Move, Remembered, Status
from agent.fota.journal import MAX_DOWNLOAD_TRIES, MAX_INSTALL_STARTS, OpenJob, Result, Step
from agent.fota.ranges import DownloadError, TryAgain, WrongLength
from agent.fota.readback import NotSeen, read_back
from agent.fota.versions import same_version
from agent.http.addresses import SourceRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent.fota.addresses import Sources
    from agent.fota.download import Clock, Downloader
    from agent.fota.installers.base import Installer
    from agent.fota.jobs import Execution, Job
    from agent.fota.journal import Journal
    from agent.fota.verification import Proof, Trust
    from agent.http.addresses import Target


class JobSource(Protocol):
    """The device cloud, for one device."""

    async def current(self) -> Execution | None:
        """Return the pending job, None where there is none."""

    async def report(self, job_id: str, status: Status, detail: str) -> None:
        """Report a state. Raises ServiceRefusal (the job is not ours any more), Unavailable."""


class Observer:
    """Hears what is going on; this one does not listen."""

    def stage(self, text: str) -> None:
        """Hear a sentence for a person."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Hear how far it has come."""


class _JobGone(Exception):
    """The cloud cancelled or replaced the job in the middle of the work."""


class _Decided(Exception):
    """The job has its result."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done with the pending job, and why. `refusal` is "" where it is taken."""

    execution: Execution
    job: Job | None
    targets: tuple[Target, ...]
    running: str
    refusal: str
    needed: str
    """What the image must prove: size-checked, intact or verified."""


@dataclass(slots=True)
class Runner:
    """Carries out the jobs of one kit."""

    cloud: JobSource
    installer: Installer
    journal: Journal
    downloader: Downloader
    clock: Clock
    sources: Sources
    trust: Trust
    gate: Callable[[], Awaitable[str]]
    """Why the modem's firmware is too old, "" where it is not (clauses D1.3, D1.4)."""
    observer: Observer

    async def pull(self) -> Result | None:
        """Carry the pending job to its end; None where there is none.

        Raises Unavailable where the cloud or the download host is out of reach (call again
        later), at.AtError where the kit is (the same), RefusedByRule for the firmware gate.
        """
        done = await self._go_on_installing()
        await self._deliver()
        offered = await self.cloud.current()
        move = self._move(offered)
        if move is Move.DROP:
            self._drop()
            move = self._move(offered)
        if move is Move.REPORT_AGAIN and offered is not None:
            return await self._report_again(offered.job_id)
        if move not in {Move.TAKE, Move.RESUME} or offered is None:
            return done
        plan = await self._plan(offered)
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
        return None if offered is None else await self._plan(offered)

    async def abandon(self, detail: str) -> Result | None:
        """Give up the open job and report it FAILED; None where there is none."""
        job = self.journal.open_job
        if job is None:
            return None
        if job.reported is Status.QUEUED:
            return await self._end(Status.REJECTED, detail)
        return await self._end(Status.FAILED, detail)

    # --- the steps

    async def _carry_out(self, plan: Plan) -> Result | None:
        try:
            if plan.refusal or plan.job is None:
                raise _Decided(Status.REJECTED, plan.refusal)
            await self._begin(plan)
            package = await self._fetch(plan.job, plan.targets)
            await self._still_ours()
            await self._install(package)
        except _Decided as end:
            return await self._end(end.status, end.detail)
        except (_JobGone, ServiceRefusal):
            return self._drop()
        except TryAgain as away:
            return await self._later(away)
        return await self._go_on_installing()

    async def _plan(self, offered: Execution) -> Plan:
        try:
            job = jobs.read_job(offered)
        except MalformedJob as bad:
            return Plan(offered, None, (), "", str(bad), "")
        needed = verification.required_level(job.kind, self.trust).word
        targets: tuple[Target, ...] = ()
        running = ""
        try:
            await self._check_kit(job)
            targets = tuple(job_target(job.host, path, self.sources) for path in job.paths)
            verification.check_provable(job, self.trust)
            now = await self.installer.running(job.kind)
            running = now.version if now else ""
            verification.check_downgrade(job, "", running, self.trust)
        except _Decided as refused:
            return Plan(offered, job, targets, running, refused.detail, needed)
        except (SourceRefused, verification.NotProven) as refused:
            return Plan(offered, job, targets, running, str(refused), needed)
        return Plan(offered, job, targets, running, "", needed)

    async def _check_kit(self, job: Job) -> None:
        gate = await self.gate()
        if gate and job.kind not in jobs.MODEM_TYPES:
            # Clause D1.3: nothing is done in such a kit's name; only D1.4's refusal is reported.
            raise RefusedByRule(gate, hint="update the modem's firmware by cable first")
        facts = KitFacts(
            installer=self.installer.name, types=self.installer.types, gate_refusal=gate
        )
        reason = jobs.reject_reason(job, facts) or await self.installer.check(job)
        if reason:
            raise _Decided(Status.REJECTED, reason)

    async def _begin(self, plan: Plan) -> None:
        open_job, job = self.journal.open_job, plan.job
        assert open_job is not None
        assert job is not None
        if open_job.reported is Status.QUEUED:
            await self._report(Status.IN_PROGRESS, f"download of {_what(job)} begins")
        if open_job.step is Step.TAKEN:
            self.journal.update(step=Step.STARTED, running_before=plan.running)
        if plan.running and job.version and same_version(plan.running, job.version):
            now = await self.installer.running(job.kind)
            if now is not None and not now.image_hash:
                raise _Decided(
                    Status.SUCCEEDED, f"{now.version} already runs; nothing was installed"
                )

    async def _fetch(self, job: Job, targets: tuple[Target, ...]) -> Package:
        if self.installer.fetches_itself(job):
            return await self._leave_fetching(job, targets[0])
        try:
            proofs = [
                await self._fetch_one(job, target, index) for index, target in enumerate(targets)
            ]
            sizes = [self.journal.image_path(n).stat().st_size for n in range(len(targets))]
            # Two builds share one declared size, of each or of both together: not stated.
            if sum(sizes) != job.size_bytes and set(sizes) != {job.size_bytes}:
                raise WrongLength(f"the files have {sizes} bytes, the job says {job.size_bytes}")
        except TooSlow as slow:
            raise _Decided(Status.TIMED_OUT, f"download took too long: {slow}") from slow
        except (DownloadError, SourceRefused) as failed:
            raise _Decided(Status.FAILED, f"download failed: {failed}") from failed
        except verification.NotProven as unproven:
            raise _Decided(Status.REJECTED, f"not installed: {unproven}") from unproven
        proof = min(proofs, key=lambda one: one.level)
        self.observer.stage(proof.sentence())
        opened = self.journal.update(
            step=Step.PROVEN,
            sha256=tuple(one.sha256 for one in proofs),
            proof=proof.sentence(),
            version=proof.version or job.version,
            image_hash=proof.image_hash,
        )
        return self._package(job, opened, targets)

    async def _fetch_one(self, job: Job, target: Target, index: int) -> Proof:
        open_job = self.journal.open_job
        assert open_job is not None
        exact = len(job.paths) == 1
        etags = [*open_job.etags, "", ""][:2]

        def remember(etag: str) -> None:
            etags[index] = etag
            self.journal.update(etags=tuple(etags))

        path = self.journal.image_path(index)
        needed = verification.required_level(job.kind, self.trust)
        self.observer.stage(f"downloading {target.url}")
        fetched = await self.downloader.fetch(
            Wanted(
                target=target,
                path=path,
                size_bytes=job.size_bytes,
                exact=exact,
                etag=etags[index],
                join_loosely=needed > verification.Level.SIZE_CHECKED,
                on_etag=remember,
                on_progress=lambda done, total: self.observer.progress("download", done, total),
                at_each_tenth=self._still_ours,
            )
        )
        proof = verification.prove(path, job, fetched.sha256, self.trust)
        verification.check_level(proof, job.kind, self.trust)
        verification.check_downgrade(job, proof.version, open_job.running_before, self.trust)
        return proof

    async def _later(self, away: TryAgain) -> Result:
        """Leave the download for the next pull, unless it was left often enough."""
        opened = self.journal.open_job
        assert opened is not None
        if opened.download_tries + 1 < MAX_DOWNLOAD_TRIES:
            self.journal.update(download_tries=opened.download_tries + 1)
            raise away
        text = f"download given up after {MAX_DOWNLOAD_TRIES} tries: {away}"
        return await self._end(Status.TIMED_OUT, text)

    async def _leave_fetching(self, job: Job, target: Target) -> Package:
        """Let the kit download: we see only the size that the host states."""
        if verification.required_level(job.kind, self.trust) > verification.Level.SIZE_CHECKED:
            raise _Decided(Status.REJECTED, "what the kit fetches itself can only be size-checked")
        try:
            size = await self.downloader.probe_size(target)
        except (DownloadError, SourceRefused) as failed:
            raise _Decided(Status.FAILED, f"download failed: {failed}") from failed
        if size != job.size_bytes:
            text = f"the file has {size} bytes, the job says {job.size_bytes}"
            raise _Decided(Status.FAILED, text)
        proof = "size-checked at the host: the kit itself downloads and checks the image"
        opened = self.journal.update(step=Step.PROVEN, proof=proof, version=job.version)
        return self._package(job, opened, (target,))

    async def _install(self, package: Package) -> None:
        opened = self.journal.open_job
        assert opened is not None
        if opened.install_starts >= MAX_INSTALL_STARTS:
            raise _Decided(
                Status.FAILED, f"given up after {opened.install_starts} starts of the install"
            )
        opened = self.journal.update(step=Step.INSTALLING, install_starts=opened.install_starts + 1)
        for path, sha256 in zip(package.paths, opened.sha256, strict=False):
            # The proof was of these bytes, perhaps before a restart: they must still be the same.
            if not path.exists() or hash_of(path, path.stat().st_size).hex() != sha256:
                raise _Decided(Status.FAILED, "the proven image was changed on the host's disk")
        self.observer.stage(f"installing {_what(package.job)} by {self.installer.name}")
        try:
            await self.installer.install(package, self.observer.progress)
        except InstallFailed as failed:
            raise _Decided(Status.FAILED, f"not installed: {failed}") from failed
        self.journal.update(step=Step.INSTALLED)

    async def _go_on_installing(self) -> Result | None:
        """Bring an install that has begun to its end: with or without the cloud."""
        opened = self.journal.open_job
        if opened is None or opened.remembered is not Remembered.INSTALLING:
            return None
        execution = jobs.read_execution({"jobId": opened.job_id, "jobDocument": opened.document})
        job = jobs.read_job(execution)
        package = self._package(job, opened, ())
        try:
            if opened.step is Step.INSTALLING:
                now = await self.installer.running(job.kind)
                if now is None or not runs(package, now, opened.running_before):
                    await self._install(package)
            seen = await self._read_back(package, opened)
            self.journal.update(step=Step.CONFIRMING)
            await self.installer.confirm(package)
            seen = await self._read_back(package, opened)
        except _Decided as end:
            return await self._end(end.status, end.detail)
        except InstallFailed as failed:
            text = f"{package.version} ran, but could not be made to stay: {failed}"
            return await self._end(Status.FAILED, text)
        return await self._end(Status.SUCCEEDED, f"{seen} runs; {opened.proof}")

    async def _read_back(self, package: Package, opened: OpenJob) -> str:
        self.observer.stage("waiting for the kit to say what it runs")
        try:
            return await read_back(
                self.installer, package, before=opened.running_before, clock=self.clock
            )
        except NotSeen as failed:
            raise _Decided(Status.FAILED, str(failed)) from failed

    # --- what the cloud is told

    async def _report(self, status: Status, detail: str) -> None:
        opened = self.journal.open_job
        assert opened is not None
        jobs.check_transition(opened.reported, status)
        await self.cloud.report(opened.job_id, status, jobs.detail_text(detail))
        self.journal.update(reported=status)

    async def _end(self, status: Status, detail: str) -> Result:
        """Put the job away with its result, then report it; a lost report is sent again."""
        opened = self.journal.open_job
        assert opened is not None
        jobs.check_transition(opened.reported, status)
        result = Result(
            job_id=opened.job_id,
            status=status,
            detail=jobs.detail_text(detail),
            at=self.clock.now().isoformat(timespec="seconds"),
            proof=opened.proof,
        )
        self.journal.close(result)
        self.observer.stage(f"{status.value}: {result.detail}")
        await self._deliver()
        return self.journal.result_of(result.job_id) or result

    async def _deliver(self) -> None:
        for result in self.journal.results:
            if not result.delivered:
                with contextlib.suppress(ServiceRefusal):  # deleted or cancelled meanwhile
                    await self.cloud.report(result.job_id, result.status, result.detail)
                self.journal.delivered(result.job_id)

    async def _report_again(self, job_id: str) -> Result | None:
        """Say once more how a job ended that is offered again; it is not done again."""
        result = self.journal.result_of(job_id)
        if result is None or result.status is Status.CANCELLED:
            return None
        with contextlib.suppress(ServiceRefusal):
            await self.cloud.report(result.job_id, result.status, result.detail)
        return result

    async def _still_ours(self) -> None:
        """Raise _JobGone if the cloud no longer offers the open job; its silence proves nothing."""
        opened = self.journal.open_job
        try:
            offered = await self.cloud.current()
        except Unavailable:
            return
        if offered is None or opened is None or offered.job_id != opened.job_id:
            raise _JobGone

    # --- small things

    def _move(self, offered: Execution | None) -> Move:
        opened = self.journal.open_job
        return jobs.next_move(
            offered,
            open_job=opened.job_id if opened else "",
            remembered=opened.remembered if opened else Remembered.NOTHING,
            finished=offered is not None and self.journal.result_of(offered.job_id) is not None,
        )

    def _drop(self) -> Result | None:
        opened = self.journal.open_job
        if opened is None:
            return None
        result = Result(
            job_id=opened.job_id,
            status=Status.CANCELLED,
            detail="the device cloud took the job back; nothing was installed",
            at=self.clock.now().isoformat(timespec="seconds"),
            delivered=True,
        )
        self.journal.close(result)
        self.observer.stage(f"CANCELLED: {result.detail}")
        return result

    def _package(self, job: Job, opened: OpenJob, targets: tuple[Target, ...]) -> Package:
        if not targets:
            with contextlib.suppress(SourceRefused):  # the profile changed after it was taken
                targets = (job_target(job.host, job.paths[0], self.sources),)
        paths = tuple(self.journal.image_path(index) for index in range(len(job.paths)))
        fetched_here = bool(opened.sha256)
        return Package(
            job=job,
            paths=paths if fetched_here else (),
            url=targets[0].url if targets else "",
            version=opened.version,
            image_hash=opened.image_hash,
        )


def _what(job: Job) -> str:
    return f"{job.kind.value} {job.version}".strip()
