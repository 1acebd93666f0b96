"""The kit's updates: polled for at an interval, resumed when the kit comes back."""

import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

from agent.config import Profile
from agent.daemon.kit.console import KitConsole
from agent.daemon.kit.link import KitLink
from agent.daemon.kit.store import KitStore
from agent.daemon.snapshot import Finding, FotaStatus, LastJob, Phase
from agent.daemon.status import THE_LINK, AgentEventKind, Concern
from agent.errors import AgentError, with_hint
from agent.fota.clock import LoopClock
from agent.fota.installers.base import Installer, Package, ProgressCallback, RunningVersion
from agent.fota.jobs import FirmwareType, Job, JobStatus
from agent.fota.journal import JobResult, Journal, OpenJob
from agent.fota.polling import parse_quiet_hours, poll_jobs
from agent.fota.reporter import UpdateObserver
from agent.http import HttpClient
from agent.tasks import wait_for_event
from agent.wiring.update_runner import runner_of_kit
from at.firmware_gate import read_verdict
from at.found_state import NOT_BACK
from at.protocol.errors import AtError, LinkLost

# A job that was cancelled at the cloud is known there: it is no event.
JOB_END_KINDS = {
    JobStatus.SUCCEEDED: AgentEventKind.FOTA_SUCCEEDED,
    JobStatus.FAILED: AgentEventKind.FOTA_FAILED,
    JobStatus.TIMED_OUT: AgentEventKind.FOTA_FAILED,
    JobStatus.REJECTED: AgentEventKind.FOTA_REJECTED,
}


_FAILED = JOB_END_KINDS.keys() - {JobStatus.SUCCEEDED}


class KitUpdates:
    """The updates of one kit."""

    def __init__(
        self, concern: Concern[FotaStatus], link: KitLink, console: KitConsole, store: KitStore
    ) -> None:
        self.concern = concern
        self._link = link
        self._console = console
        self._store = store
        self._published: set[str] = set()
        self._last: JobResult | None = None

    async def run(self, profile: Callable[[], Profile], client: HttpClient) -> None:
        """Pull at start, then at the interval: the work of the concern."""
        fota = profile().fota
        if not fota.interval_s:
            self.concern.set_off("fota.interval_s is 0")
            return
        await poll_jobs(
            lambda: self._link.while_same_kit(self._pull(profile, client)),
            _PollingObserver(self.concern),
            interval_s=fota.interval_s,
            quiet=parse_quiet_hours(fota.quiet_hours),
            clock=_WakeableClock(self.concern),
            jitter=random.random,
        )

    async def _pull(self, profile: Callable[[], Profile], client: HttpClient) -> JobResult | None:
        """Pull once, when the kit is there: the profile may change until then."""
        modem = await self._link.wait_up(self.concern)
        self.concern.begin_try()
        imei = self._store.record.imei
        observer = _StatusObserver(self.concern, self._link, self._console)
        async with runner_of_kit(
            profile(),
            self._store.state_dir,
            client,
            modem,
            ask_verdict=partial(read_verdict, modem),
            observer=observer,
            wrap_installer=lambda installer: ExclusiveInstaller(installer, self._link, imei),
            link=partial(self._link.wait_up, self.concern),
            names=lambda _device_id: self._store.record.names,
        ) as runner:
            observer.journal = runner.journal
            try:
                result = await runner.pull()
            except (AgentError, AtError):
                self.publish_ends(runner.journal.results)
                raise
            finally:
                self._link.expects_restart = False
            self.publish_ends(runner.journal.results)
            return result

    def publish_ends(self, results: Sequence[JobResult]) -> None:
        """Publish how jobs ended; `results` are the journal's, so that a kill loses none.

        After a restart of the agent all are published again, under the same key.
        """
        for result in results:
            kind = JOB_END_KINDS.get(result.status)
            if kind is not None and result.job_id not in self._published:
                detail = f"{result.job_id}: {result.status.value}: {result.detail}"
                at = datetime.fromisoformat(result.at)
                self.concern.publish(kind, detail, at=at, key=result.job_id)
            self._published.add(result.job_id)
            self._last = result
        if (last := self._last) is not None:
            with self.concern.changing() as status:
                status.last = LastJob(last.job_id, last.status.value, last.at, last.proof or None)

    def findings(self, *, is_back: bool) -> Iterator[Finding]:
        """Return that the last update has left the kit offline, until it `is_back` once.

        Raises AgentError where the disk does not take that it is.
        """
        last = self._last
        if last is None or last.job_id == self._store.record.back_after:
            return
        if is_back:
            self._store.update(back_after=last.job_id)
            return
        for part in last.detail.split("; "):
            if part.startswith(NOT_BACK):
                yield Finding(f"since its update the kit is {part}", "`cellagent modem why`")

    def forget(self) -> None:
        """Look at once: what was found, and how it ended, was another kit's."""
        self._last = None
        with self.concern.changing() as status:
            status.last = None
        self.concern.wake.set()

    def try_again(self) -> None:
        """Try at once what failed, or was broken off: the kit is back, or was in other hands."""
        if self.concern.phase is not Phase.WELL:
            self.concern.wake.set()


class ExclusiveInstaller:
    """An installer that has exclusive use of the kit, and of its port, while it works.

    It gives the image to the kit of an IMEI alone, "" where that is not known.
    """

    def __init__(self, inner: Installer, link: KitLink, imei: str) -> None:
        self.name, self.types, self.port = inner.name, inner.types, inner.port
        self._inner = inner
        self._link = link
        self._imei = imei

    async def check(self, job: Job) -> str:
        """Return why this kit is not fit for the job now."""
        async with self._at_its_port("a look at what an update finds"):
            return await self._inner.check(job)

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        """Return the running version of this type."""
        async with self._at_its_port("a look at what runs"):
            return await self._inner.running(kind)

    async def install(self, package: Package, progress: ProgressCallback) -> str:
        """Put the image on the kit and start it; return what it read back.

        Raises InstallFailed, KitAway, LinkLost.
        """
        await self._link.wait_available()  # the installer may have had its port until now
        what = "the installation of an update"
        async with self._link.exclusive(what):
            await self._link.require_kit(self._imei, what)
            async with self._link.released(self.port, what):
                self._link.expects_restart = True
                try:
                    return await self._inner.install(package, progress)
                finally:
                    self._link.on_new_software()

    async def confirm(self, package: Package) -> None:
        """Make the image that runs now permanent. Raises InstallFailed."""
        what = "the confirmation of an update"
        async with self._link.exclusive(what), self._link.released(self.port, what):
            await self._inner.confirm(package)

    @asynccontextmanager
    async def _at_its_port(self, what: str) -> AsyncIterator[None]:
        """Release the installer's port; without one it uses the modem, in turn."""
        if not self.port:
            yield
            return
        async with self._link.exclusive(what), self._link.released(self.port, what):
            yield


class _WakeableClock(LoopClock):
    """A clock whose sleep ends when the concern is woken."""

    def __init__(self, concern: Concern[FotaStatus]) -> None:
        self._concern = concern

    async def sleep(self, seconds: float) -> None:
        """Sleep, at most so long."""
        self._concern.set_next_try(seconds)
        await wait_for_event(self._concern.wake, seconds)
        self._concern.wake.clear()


class _PollingObserver:
    """Shows the end of each poll in the status."""

    def __init__(self, concern: Concern[FotaStatus]) -> None:
        self._concern = concern

    def result(self, result: JobResult | None) -> None:  # noqa: ARG002 - the journal shows it
        """Show that no job is under way."""
        with self._concern.changing() as status:
            status.stage = status.done = status.total = status.job = status.proof = None
        self._concern.set_well()

    def failed(self, error: Exception) -> None:
        """Show why a poll failed."""
        if isinstance(error, LinkLost):
            self._concern.set_waiting(THE_LINK)
        else:
            self._concern.record_failure(error)


class _StatusObserver(UpdateObserver):
    """Shows the progress of an update in the status."""

    def __init__(self, concern: Concern[FotaStatus], link: KitLink, console: KitConsole) -> None:
        self._concern = concern
        self._link = link
        self._console = console
        self.journal: Journal | None = None
        """That of the kit's jobs, once it is open."""

    def _job(self) -> OpenJob | None:
        return None if self.journal is None else self.journal.open_job

    def stage(self, text: str) -> None:
        """Log the beginning of a stage and show it; `text` is a sentence for a person."""
        self._show(text)
        self._concern.log(logging.INFO, text)

    def ended(self, result: JobResult) -> None:
        """Log the end of a job here, once: the cloud may offer the job again."""
        text = f"{result.status.value}: {result.detail}"
        self._show(text)
        level = logging.WARNING if result.status in _FAILED else logging.INFO
        hint = self._concern.pasteable(result.hint)
        self._concern.log(level, with_hint(f"{result.job_id}: {text}", hint))

    def _show(self, text: str) -> None:
        job = self._job()
        with self._concern.changing() as status:
            status.stage, status.done, status.total = text, None, None
            if job is not None:
                status.job, status.proof = job.job_id, job.proof or None

    def progress(self, what: str, done: int, total: int) -> None:
        """Show progress: `done` of `total` units of `what`."""
        with self._concern.changing() as status:
            status.stage, status.done, status.total = what, done, total

    async def overheard(self, data: bytes) -> None:
        """Store what the kit printed on the installer's port, if it is a port of ours."""
        if any(held.released_to for held in self._link.ports):
            await self._console.receive_from_installer(data)
