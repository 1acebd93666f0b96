"""From a job to an image that has proven what it must, in the journal."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent.fota import verification
from agent.fota.addresses import job_target
from agent.fota.download.downloader import TooSlow, Wanted
from agent.fota.download.ranges import DownloadError, WrongLength
from agent.fota.installers.base import Package
from agent.fota.jobs import Status
from agent.fota.journal import Step
from agent.fota.reporting import still_ours
from agent.fota.tools import Decided
from agent.http.addresses import SourceRefused

if TYPE_CHECKING:
    from agent.fota.jobs import Job
    from agent.fota.journal import OpenJob
    from agent.fota.tools import Tools
    from agent.fota.verification import Proof
    from agent.http.addresses import Target


async def fetch(tools: Tools, job: Job, targets: tuple[Target, ...]) -> Package:
    """Download and prove the open job's image, or have the kit fetch it.

    Raises Decided, JobGone, and TryAgain where the download host is out of reach.
    """
    if tools.installer.fetches_itself(job):
        return await _leave_fetching(tools, job, targets[0])
    journal = tools.journal
    try:
        proofs = [
            await _fetch_one(tools, job, target, index) for index, target in enumerate(targets)
        ]
        sizes = [journal.image_path(n).stat().st_size for n in range(len(targets))]
        # Two builds share one declared size, of each or of both together: not stated.
        if sum(sizes) != job.size_bytes and set(sizes) != {job.size_bytes}:
            raise WrongLength(f"the files have {sizes} bytes, the job says {job.size_bytes}")
    except TooSlow as slow:
        raise Decided(Status.TIMED_OUT, f"download took too long: {slow}") from slow
    except (DownloadError, SourceRefused) as failed:
        raise Decided(Status.FAILED, f"download failed: {failed}") from failed
    except verification.NotProven as unproven:
        raise Decided(Status.REJECTED, f"not installed: {unproven}") from unproven
    proof = min(proofs, key=lambda one: one.level)
    tools.observer.stage(proof.sentence())
    opened = journal.update(
        step=Step.PROVEN,
        sha256=tuple(one.sha256 for one in proofs),
        proof=proof.sentence(),
        version=proof.version or job.version,
        image_hash=proof.image_hash,
    )
    return package_of(tools, job, opened, targets)


def package_of(
    tools: Tools, job: Job, opened: OpenJob, targets: tuple[Target, ...] = ()
) -> Package:
    """Return the package of a job whose image is proven, perhaps before a restart."""
    if not targets:
        with contextlib.suppress(SourceRefused):  # the profile changed after it was taken
            targets = (job_target(job.host, job.paths[0], tools.sources),)
    paths = tuple(tools.journal.image_path(index) for index in range(len(job.paths)))
    fetched_here = bool(opened.sha256)
    return Package(
        job=job,
        paths=paths if fetched_here else (),
        url=targets[0].url if targets else "",
        version=opened.version,
        image_hash=opened.image_hash,
    )


async def _fetch_one(tools: Tools, job: Job, target: Target, index: int) -> Proof:
    journal = tools.journal
    open_job = journal.open_job
    assert open_job is not None
    etags = [*open_job.etags, "", ""][:2]

    def remember(etag: str) -> None:
        etags[index] = etag
        journal.update(etags=tuple(etags))

    path = journal.image_path(index)
    needed = verification.required_level(job.kind, tools.trust)
    tools.observer.stage(f"downloading {target.url}")
    fetched = await tools.downloader.fetch(
        Wanted(
            target=target,
            path=path,
            size_bytes=job.size_bytes,
            exact=len(job.paths) == 1,
            etag=etags[index],
            join_loosely=needed > verification.Level.SIZE_CHECKED,
            on_etag=remember,
            on_progress=lambda done, total: tools.observer.progress("download", done, total),
            at_each_tenth=lambda: still_ours(tools),
        )
    )
    proof = verification.prove(path, job, fetched.sha256, tools.trust)
    verification.check_level(proof, job.kind, tools.trust)
    verification.check_downgrade(job, proof.version, open_job.running_before, tools.trust)
    return proof


async def _leave_fetching(tools: Tools, job: Job, target: Target) -> Package:
    """Let the kit download: we see only the size that the host states."""
    if verification.required_level(job.kind, tools.trust) > verification.Level.SIZE_CHECKED:
        raise Decided(Status.REJECTED, "what the kit fetches itself can only be size-checked")
    try:
        size = await tools.downloader.probe_size(target)
    except (DownloadError, SourceRefused) as failed:
        raise Decided(Status.FAILED, f"download failed: {failed}") from failed
    if size != job.size_bytes:
        text = f"the file has {size} bytes, the job says {job.size_bytes}"
        raise Decided(Status.FAILED, text)
    proof = "size-checked at the host: the kit itself downloads and checks the image"
    opened = tools.journal.update(step=Step.PROVEN, proof=proof, version=job.version)
    return package_of(tools, job, opened, (target,))
