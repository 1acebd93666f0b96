"""The kit's updates: looked for at the interval, gone on with when the kit comes back."""

from __future__ import annotations

import logging
import random
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from agent.daemon.own_events import job_end
from agent.daemon.status import State
from agent.fota.download.downloader import LoopClock
from agent.fota.jobs import JobStatus
from agent.fota.polling import parse_quiet_hours, poll_jobs
from agent.fota.reporter import UpdateObserver
from agent.tasks import wait_for_event
from agent.wiring.update_runner import runner_for
from at.protocol.errors import LinkLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from agent.config import Profile
    from agent.daemon.kit.console import KitConsole
    from agent.daemon.kit.link import KitLink
    from agent.daemon.status import Concern
    from agent.fota.installers.base import Installer, Package, ProgressCallback, RunningVersion
    from agent.fota.jobs import FirmwareType, Job
    from agent.fota.journal import JobResult
    from agent.http import HttpClient


class Updates:
    """The updates of one kit."""

    def __init__(
        self, concern: Concern, link: KitLink, console: KitConsole, state_dir: Path
    ) -> None:
        self.concern = concern
        self._link = link
        self._console = console
        self._state_dir = state_dir
        self._told: set[str] = set()

    async def run(self, profile: Callable[[], Profile], client: HttpClient) -> None:
        """Pull at start, then at the interval: the work of the concern."""
        fota = profile().fota
        if not fota.interval_s:
            self.concern.off("fota.interval_s is 0")
            return

        async def pull() -> JobResult | None:
            modem = await self._link.up(self.concern)
            async with AsyncExitStack() as stack:
                runner = await runner_for(
                    stack,
                    profile(),
                    self._state_dir,
                    client,
                    modem=modem,
                    observer=_Shown(self.concern, self._link, self._console),
                    wrap_installer=lambda installer: Undisturbed(installer, self._link),
                )
                try:
                    return await runner.pull()
                finally:
                    self._link.expects_restart = False
                    self._tell_ends(runner.journal.results)

        await poll_jobs(
            pull,
            _Told(self.concern),
            interval_s=fota.interval_s,
            quiet=parse_quiet_hours(fota.quiet_hours),
            clock=_Wakeable(self.concern),
            jitter=random.random,
        )

    def _tell_ends(self, results: Sequence[JobResult]) -> None:
        """Tell how jobs ended. The journal knows it before we do: a kill between loses nothing.

        What was told before the agent was killed is told again, under the same key.
        """
        for result in results:
            what = job_end(result.status)
            if what is not None and result.job_id not in self._told:
                detail = f"{result.job_id}: {result.status.value}: {result.detail}"
                at = datetime.fromisoformat(result.at)
                self.concern.happened(what, detail, at=at, key=result.job_id)
            self._told.add(result.job_id)

    def link_is_up(self) -> None:
        """Go on with what was broken off."""
        if self.concern.state in {State.TROUBLE, State.WAITING}:
            self.concern.wake.set()


class Undisturbed:
    """An installer whose work nobody comes between: neither commands, nor our own reading."""

    def __init__(self, inner: Installer, link: KitLink) -> None:
        self._inner = inner
        self._link = link

    @property
    def name(self) -> str:
        """The name in the profile."""
        return self._inner.name

    @property
    def types(self) -> frozenset[FirmwareType]:
        """What it can install at all."""
        return self._inner.types

    @property
    def port(self) -> str:
        """The port that it opens itself."""
        return self._inner.port

    def fetches_itself(self, job: Job) -> bool:
        """Tell whether the kit downloads this job's image itself."""
        return self._inner.fetches_itself(job)

    async def check(self, job: Job) -> str:
        """Return why this kit is not fit for the job now."""
        async with self._at_its_port("a look at what an update finds"):
            return await self._inner.check(job)

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        """Return what of this type runs."""
        async with self._at_its_port("a look at what runs"):
            return await self._inner.running(kind)

    async def install(self, package: Package, progress: ProgressCallback) -> None:
        """Put the image on the kit and start it. Raises InstallFailed."""
        async with self._link.visited(self.port, "the installation of an update"):
            self._link.expects_restart = True
            try:
                await self._inner.install(package, progress)
            finally:
                self._link.on_new_software()

    async def confirm(self, package: Package) -> None:
        """Make the image that now runs stay. Raises InstallFailed."""
        async with self._link.visited(self.port, "the confirmation of an update"):
            await self._inner.confirm(package)

    @asynccontextmanager
    async def _at_its_port(self, what: str) -> AsyncIterator[None]:
        """Ask the kit something: over the modem it is a command like any other."""
        if not self.port:
            yield
            return
        async with self._link.visited(self.port, what):
            yield


class _Wakeable(LoopClock):
    """A clock whose waits end when the concern is woken."""

    def __init__(self, concern: Concern) -> None:
        self._concern = concern

    async def sleep(self, seconds: float) -> None:
        """Wait, at most so long."""
        await wait_for_event(self._concern.wake, seconds)
        self._concern.wake.clear()


class _Told:
    def __init__(self, concern: Concern) -> None:
        self._concern = concern

    def result(self, result: JobResult | None) -> None:
        """Hear of a job that ended, or None for "no job"."""
        self._concern.learn(stage=None, done=None, total=None)
        if result is not None:
            self._concern.learn(
                last={"job": result.job_id, "status": result.status.value, "at": result.at}
            )
            text = f"{result.job_id}: {result.status.value}: {result.detail}"
            self._concern.tell(
                logging.INFO if result.status is JobStatus.SUCCEEDED else logging.WARNING, text
            )
        self._concern.well()

    def failed(self, error: Exception) -> None:
        """Hear of what stood in the way."""
        if isinstance(error, LinkLost):
            self._concern.waits("the link to the kit")
        else:
            self._concern.failed(error)


class _Shown(UpdateObserver):
    def __init__(self, concern: Concern, link: KitLink, console: KitConsole) -> None:
        self._concern = concern
        self._link = link
        self._console = console

    def stage(self, text: str) -> None:
        """Hear a sentence for a person."""
        self._concern.learn(stage=text, done=None, total=None)
        self._concern.tell(logging.INFO, text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Hear how far it has come."""
        self._concern.learn(stage=what, done=done, total=total)

    async def overheard(self, data: bytes) -> None:
        """Hear what the kit printed on the installer's port, if it is one that we read."""
        if any(kept.let_go_for for kept in self._link.ports):
            await self._console.overhear(data)
