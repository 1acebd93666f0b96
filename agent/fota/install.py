"""Installs a proven image, reads back the running version, and confirms it."""

from dataclasses import dataclass
from typing import Protocol

from agent.errors import AgentError
from agent.fota.clock import AsyncClock
from agent.fota.image import hash_of
from agent.fota.installers.base import Installer, InstallFailed, Package, RunningVersion, runs
from agent.fota.job_step import JobEvent, JobStep
from agent.fota.jobs import FirmwareType, JobEnded, JobStatus
from agent.fota.journal import MAX_INSTALL_STARTS, Journal
from agent.fota.kit_state import KitState
from agent.fota.reporter import UpdateObserver

DEADLINE_S = 300.0
"""A swap of two 1 MB slots takes a minute, a whole modem image a few."""
PAUSE_S = 2.0
SAME_ANSWERS = 3
"""Answers in a row with another version after which the install has failed."""


class TellsVersion(Protocol):
    """What can be asked which version runs on a kit."""

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        """Return what of this type runs, None while nothing tells it."""


async def running_version(kit: TellsVersion, kind: FirmwareType) -> str:
    """Return which version of this type runs on a kit, "" while nothing tells it."""
    now = await kit.running(kind)
    return now.version if now else ""


class NotSeen(AgentError):
    """The new version did not run within the time; the message says which one did."""

    kind = "fota-readback"


@dataclass(slots=True)
class Installation:
    """Installs the proven image of a journal's open job, and verifies that it runs."""

    installer: Installer
    journal: Journal
    clock: AsyncClock
    observer: UpdateObserver
    state: KitState

    async def install(self, package: Package) -> None:
        """Put the image on the kit. Raises JobEnded, AtError."""
        opened = self.journal.job
        if opened.install_starts >= MAX_INSTALL_STARTS:
            raise JobEnded(
                JobStatus.FAILED, f"given up after {opened.install_starts} starts of the install"
            )
        starts = opened.install_starts + 1
        # An install that was cut off has changed the kit: what was found before that counts.
        found = opened.found if opened.install_starts else await self.state.find()
        opened = self.journal.advance(JobEvent.INSTALL, install_starts=starts, found=found)
        for path, sha256 in zip(package.paths, opened.sha256, strict=False):
            # The proof was of these bytes, perhaps before a restart: they must still be the same.
            if not path.exists() or hash_of(path, path.stat().st_size).hex() != sha256:
                raise JobEnded(JobStatus.FAILED, "the proven image was changed on the host's disk")
        if not package.paths and not package.job.by_kit:
            # The older `modem_fetches` left it to the kit; its journal may be from then.
            raise JobEnded(JobStatus.FAILED, "not installed: the image is not on this host")
        by = "the kit's own client" if package.job.by_kit else self.installer.name
        self.observer.stage(f"installing {package.job.summary()} by {by}")
        try:
            seen = await self.installer.install(package, self.observer.progress)
        except InstallFailed as failed:
            raise JobEnded(JobStatus.FAILED, f"not installed: {failed}") from failed
        self.journal.advance(JobEvent.PLACE, read_back=seen)

    async def running(self, kind: FirmwareType) -> RunningVersion | None:
        """Return what of this type runs: what is told now, else what the install read back."""
        seen = self.journal.job.read_back
        return await self.installer.running(kind) or (RunningVersion(seen) if seen else None)

    async def finish(self, package: Package) -> str:
        """Finish an install that has begun; return which version runs. Raises JobEnded."""
        opened = self.journal.job
        before = opened.running_before
        try:
            if opened.step is JobStep.INSTALLING:
                now = await self.running(package.job.kind)
                if now is None or not runs(package, now, before):
                    await self.install(package)
            await self._await_version(package, before)
            self.journal.advance(JobEvent.CONFIRM)
            await self.installer.confirm(package)
            return await self._await_version(package, before)
        except InstallFailed as failed:
            text = f"{package.version} ran, but could not be made to stay: {failed}"
            raise JobEnded(JobStatus.FAILED, text) from failed

    async def put_back(self) -> str:
        """Put back the state that the kit was found in; return how that ended, "" for nothing."""
        found = self.journal.job.found
        if found is None:
            return ""
        self.observer.stage("putting the kit back into the state that it was found in")
        return await self.state.put_back(found)

    async def _await_version(self, package: Package, before: str) -> str:
        self.observer.stage("waiting for the kit to say what it runs")
        try:
            return await read_back(self, package, before=before, clock=self.clock)
        except NotSeen as failed:
            raise JobEnded(JobStatus.FAILED, str(failed)) from failed


async def read_back(
    installer: TellsVersion,
    package: Package,
    *,
    before: str,
    clock: AsyncClock,
    deadline_s: float = DEADLINE_S,
) -> str:
    """Return the version that runs, once it is the package's. Raises NotSeen."""
    end = clock.monotonic() + deadline_s
    others = 0
    last = ""
    while True:
        now = await installer.running(package.job.kind)
        if now is not None:
            if runs(package, now, before):
                return now.version
            last = now.version
            others = 0 if now.pending else others + 1
            if others >= SAME_ANSWERS:
                break
        if clock.monotonic() + PAUSE_S > end:
            break
        await clock.sleep(PAUSE_S)
    expected = package.version or "the new version"
    if not last:
        raise NotSeen(f"the kit did not answer within {deadline_s:.0f} s after the restart")
    if last == before:
        raise NotSeen(f"the kit runs {last} as before, not {expected}: it went back, or never left")
    raise NotSeen(f"the kit runs {last}, not {expected}")
