"""From a proven image to a version that was seen to run and stays; with or without the cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.fota import jobs
from agent.fota.fetching import package_of
from agent.fota.image import hash_of
from agent.fota.installers.base import InstallFailed, runs
from agent.fota.jobs import Status
from agent.fota.journal import MAX_INSTALL_STARTS, Step
from agent.fota.readback import NotSeen, read_back
from agent.fota.tools import Decided, shown

if TYPE_CHECKING:
    from agent.fota.installers.base import Package
    from agent.fota.journal import OpenJob
    from agent.fota.tools import Tools


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
