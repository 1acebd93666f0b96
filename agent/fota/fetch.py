"""Downloads the image of a job, proves it, and records the proof in the journal."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.fota import verification
from agent.fota.download.downloader import Downloader, DownloadRequest, TooSlow
from agent.fota.download.ranges import DownloadError, WrongLength
from agent.fota.installers.base import Package
from agent.fota.job_step import JobEvent
from agent.fota.jobs import MAX_IMAGE_BYTES, Job, JobEnded, JobStatus
from agent.fota.journal import Journal
from agent.fota.reporter import UpdateObserver
from agent.fota.verification import Proof, TrustPolicy
from agent.http.download_targets import SourceRefused, Target


@dataclass(slots=True)
class ImageFetcher:
    """Downloads and proves the image of a journal's open job."""

    downloader: Downloader
    journal: Journal
    trust: TrustPolicy
    observer: UpdateObserver

    async def fetch(
        self, job: Job, targets: tuple[Target, ...], *, check_offered: Callable[[], Awaitable[None]]
    ) -> Package:
        """Download the files of the job, one for each target, and prove them.

        `check_offered` is awaited after each tenth of a file; what it raises ends the download.
        Raises JobEnded, and DownloadInterrupted if the download host is out of reach.
        """
        journal = self.journal
        try:
            proofs = [
                await self._fetch_file(job, target, index, check_offered)
                for index, target in enumerate(targets)
            ]
            sizes = [journal.image_path(n).stat().st_size for n in range(len(targets))]
            # Two builds share one declared size, of each or of both together: not stated.
            declared = job.size_bytes or sum(sizes)
            if sum(sizes) != declared and set(sizes) != {declared}:
                raise WrongLength(f"the files have {sizes} bytes, the job says {job.size_bytes}")
        except TooSlow as slow:
            raise JobEnded(JobStatus.TIMED_OUT, f"download took too long: {slow}") from slow
        except (DownloadError, SourceRefused) as failed:
            text = f"download failed: {failed}"
            raise JobEnded(JobStatus.FAILED, text, failed.hint) from failed
        except verification.NotProven as unproven:
            text = f"not installed: {unproven}"
            raise JobEnded(JobStatus.REJECTED, text, unproven.hint) from unproven
        proof = min(proofs, key=lambda one: one.level)
        self.observer.stage(proof.sentence())
        journal.advance(
            JobEvent.PROVE,
            sha256=tuple(one.sha256 for one in proofs),
            proof=proof.sentence(),
            version=proof.version or job.version,
            image_hash=proof.image_hash,
        )
        return package_of(journal, job)

    def left_to_kit(self, job: Job) -> Package:
        """Leave everything to the kit's own client, which found the image."""
        proof = f"{verification.CHECKED_BY_KIT}: its own client downloads the image"
        self.journal.advance(JobEvent.PROVE, proof=proof)
        return package_of(self.journal, job)

    async def _stated_size(self, target: Target) -> int:
        """Return the size of a file whose job declares none. Raises WrongLength."""
        size = await self.downloader.probe_size(target)
        if size is None or not 0 < size <= MAX_IMAGE_BYTES:
            raise WrongLength(f"{target.host} states {size} as the size of the image")
        return size

    async def _fetch_file(
        self, job: Job, target: Target, index: int, check_offered: Callable[[], Awaitable[None]]
    ) -> Proof:
        open_job = self.journal.job
        etags = [*open_job.etags, "", ""][:2]

        def remember(etag: str) -> None:
            etags[index] = etag
            self.journal.update(etags=tuple(etags))

        path = self.journal.image_path(index)
        needed = verification.required_level(job.kind, self.trust)
        self.observer.stage(f"downloading {target.shown}")
        fetched = await self.downloader.fetch(
            DownloadRequest(
                target=target,
                path=path,
                size_bytes=job.size_bytes or await self._stated_size(target),
                exact=len(job.paths) == 1,
                etag=etags[index],
                join_loosely=needed > verification.ProofLevel.SIZE_CHECKED,
                on_etag=remember,
                on_progress=lambda done, total: self.observer.progress("download", done, total),
                at_each_tenth=check_offered,
            )
        )
        proof = verification.prove(path, job, fetched.sha256, self.trust)
        verification.check_level(proof, job.kind, self.trust)
        verification.check_downgrade(job, proof.version, open_job.running_before, self.trust)
        return proof


def package_of(journal: Journal, job: Job) -> Package:
    """Return the package of the open job, whose image is proven, perhaps before a restart.

    It has no path where the kit fetches the image itself.
    """
    opened = journal.job
    paths = tuple(journal.image_path(index) for index in range(len(job.paths)))
    return Package(
        job=job,
        paths=paths if opened.sha256 else (),
        version=opened.version,
        image_hash=opened.image_hash,
    )
