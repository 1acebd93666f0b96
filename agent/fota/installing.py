"""From a proven image to a version that was seen to run and stays; with or without the cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.errors import AgentError
from agent.fota import jobs
from agent.fota.fetching import package_of
from agent.fota.image import hash_of
from agent.fota.installers.base import InstallFailed, runs
from agent.fota.jobs import Status
from agent.fota.journal import MAX_INSTALL_STARTS, Step
from agent.fota.tools import Decided, shown

if TYPE_CHECKING:
    from agent.fota.download.downloader import Clock
    from agent.fota.installers.base import Installer, Package
    from agent.fota.journal import OpenJob
    from agent.fota.tools import Tools


DEADLINE_S = 300.0
"""A swap of two 1 MB slots takes a minute, a whole modem image a few."""
PAUSE_S = 2.0
SAME_ANSWERS = 3
"""So often in a row the kit must name something else before it is believed."""


class NotSeen(AgentError):
    """The new version did not run within the time; the message says what did."""

    kind = "fota-readback"


async def read_back(
    installer: Installer,
    package: Package,
    *,
    before: str,
    clock: Clock,
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
    wanted = package.version or "the new version"
    if not last:
        raise NotSeen(f"the kit did not answer within {deadline_s:.0f} s after the restart")
    if last == before:
        raise NotSeen(f"the kit runs {last} as before, not {wanted}: it went back, or never left")
    raise NotSeen(f"the kit runs {last or 'nothing that it names'}, not {wanted}")


async def install(tools: Tools, package: Package) -> None:
    """Put the open job's image on the kit. Raises Decided."""
    opened = tools.journal.open_job
    assert opened is not None
    if opened.install_starts >= MAX_INSTALL_STARTS:
        raise Decided(
            Status.FAILED, f"given up after {opened.install_starts} starts of the install"
        )
    starts = opened.install_starts + 1
    opened = tools.journal.update(step=Step.INSTALLING, install_starts=starts)
    for path, sha256 in zip(package.paths, opened.sha256, strict=False):
        # The proof was of these bytes, perhaps before a restart: they must still be the same.
        if not path.exists() or hash_of(path, path.stat().st_size).hex() != sha256:
            raise Decided(Status.FAILED, "the proven image was changed on the host's disk")
    tools.observer.stage(f"installing {shown(package.job)} by {tools.installer.name}")
    try:
        await tools.installer.install(package, tools.observer.progress)
    except InstallFailed as failed:
        raise Decided(Status.FAILED, f"not installed: {failed}") from failed
    tools.journal.update(step=Step.INSTALLED)


async def finish(tools: Tools, opened: OpenJob) -> str:
    """Bring an install that has begun to its end; return which version runs. Raises Decided."""
    execution = jobs.read_execution({"jobId": opened.job_id, "jobDocument": opened.document})
    job = jobs.read_job(execution)
    package = package_of(tools, job, opened)
    try:
        if opened.step is Step.INSTALLING:
            now = await tools.installer.running(job.kind)
            if now is None or not runs(package, now, opened.running_before):
                await install(tools, package)
        await _seen_to_run(tools, package, opened)
        tools.journal.update(step=Step.CONFIRMING)
        await tools.installer.confirm(package)
        return await _seen_to_run(tools, package, opened)
    except InstallFailed as failed:
        text = f"{package.version} ran, but could not be made to stay: {failed}"
        raise Decided(Status.FAILED, text) from failed


async def _seen_to_run(tools: Tools, package: Package, opened: OpenJob) -> str:
    tools.observer.stage("waiting for the kit to say what it runs")
    try:
        return await read_back(
            tools.installer, package, before=opened.running_before, clock=tools.clock
        )
    except NotSeen as failed:
        raise Decided(Status.FAILED, str(failed)) from failed
