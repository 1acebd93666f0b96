"""The journal of updates: each step is on disk before it is done, so that a kill loses nothing.

One JSON file, replaced as a whole and synced with its folder. It holds the open job and its step,
and the last results, so that a job that is offered again is not installed again. A lock beside it
lets one process at a time work on a kit's jobs.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from agent.errors import AgentError, ResourceUnavailable
from agent.files.paths import file_name_of
from agent.files.private_files import make_private_folder, write_private
from agent.fota.job_step import TRANSITIONS, JobEvent, JobStep
from agent.fota.jobs import JobStatus
from agent.json_value import JSONValue
from at.found_state import FoundState
from at.ports.process_lock import HeldByAnother, ProcessLock

FORMAT = 1
_LOOK_S = 0.05
MAX_RESULTS = 200
MAX_INSTALL_STARTS = 10
"""Starts of one install: beyond it the kit or the host restarts in a loop."""

MAX_DOWNLOAD_TRIES = 20
"""Pulls that the download host is out of reach for, before the job is given up."""


def journal_folder(state_dir: Path, device_id: str) -> Path:
    """Return the folder of a device's journal; its id may hold any characters."""
    return state_dir / "fota" / file_name_of(device_id)


def is_installing(state_dir: Path, device_id: str) -> bool:
    """Return whether an install was cut off as it wrote to a device; "": to any of this host.

    Raises JournalDamaged.
    """
    folders = (
        [journal_folder(state_dir, device_id)] if device_id else (state_dir / "fota").glob("*")
    )
    return any(folder.is_dir() and Journal(folder).step is JobStep.INSTALLING for folder in folders)


class OpenJob(msgspec.Struct, frozen=True, kw_only=True):
    """The job in progress. `document` is as the cloud sent it."""

    job_id: str
    device_id: str
    document: dict[str, JSONValue]
    step: JobStep = JobStep.TAKEN
    reported: JobStatus = JobStatus.QUEUED
    """The state that the cloud last acknowledged, or handed out."""
    etags: tuple[str, ...] = ()
    """Of each file, as the server named it when its first byte came."""
    sha256: tuple[str, ...] = ()
    """Of each file, hex, once it is whole."""
    proof: str = ""
    """What was and was not proven, as a sentence."""
    version: str = ""
    """What must run afterwards: read from the image, else named by the job."""
    image_hash: str = ""
    """MCUboot's name for it, "" where it has none."""
    running_before: str = ""
    found: FoundState | None = None
    """The kit's state before the install: put back once it has restarted."""
    read_back: str = ""
    """The version that the install read back, where nothing else tells it."""
    download_tries: int = 0
    install_starts: int = 0

    def __post_init__(self) -> None:
        """Check a file that was read. Raises ValueError."""
        if self.step is JobStep.IDLE:
            raise ValueError("an open job has a step")


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended. `delivered` is whether the cloud acknowledged it."""

    job_id: str
    status: JobStatus
    detail: str
    at: str
    """ISO 8601, UTC."""
    proof: str = ""
    delivered: bool = False
    hint: str = ""
    """What to try on this host, "" for nothing."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: int = FORMAT
    open_job: OpenJob | None = None
    results: list[JobResult] = []


class JournalDamaged(AgentError):
    """The journal cannot be read: it was renamed, and nothing is installed that it names."""

    kind = "fota-journal"


class Journal:
    """The journal of one kit, in a folder of its own. One process at a time owns it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "journal.json"
        make_private_folder(folder)
        self._file = self._load()

    @property
    def open_job(self) -> OpenJob | None:
        """The job in progress, None between jobs."""
        return self._file.open_job

    @property
    def job(self) -> OpenJob:
        """The job in progress, where there must be one. Raises JournalDamaged."""
        if self.open_job is None:
            raise JournalDamaged("there is no open job")
        return self.open_job

    @property
    def step(self) -> JobStep:
        """How far the open job has come."""
        return self.open_job.step if self.open_job else JobStep.IDLE

    @property
    def results(self) -> tuple[JobResult, ...]:
        """The last results, the oldest first."""
        return tuple(self._file.results)

    def result_of(self, job_id: str) -> JobResult | None:
        """Return how a job ended, None for one that is not in the journal."""
        return next((one for one in reversed(self._file.results) if one.job_id == job_id), None)

    def image_path(self, index: int = 0) -> Path:
        """Return the path of file `index` of the open job, the same for each job: none is left."""
        return self.folder / f"image-{index}.bin"

    def begin(self, job: OpenJob) -> OpenJob:
        """Open a job; the images of an earlier one are removed."""
        step = TRANSITIONS[self.step, JobEvent.TAKE]
        self.drop_files()
        return self._store(msgspec.structs.replace(job, step=step))

    def advance(self, event: JobEvent, **changes: object) -> OpenJob:
        """Bring the open job to the step that `event` leads to, with the fields that change."""
        return self.update(step=TRANSITIONS[self.step, event], **changes)

    def update(self, **changes: object) -> OpenJob:
        """Change fields of the open job and return it; durable when this returns."""
        return self._store(msgspec.structs.replace(self.job, **changes))

    def close(self, result: JobResult) -> None:
        """Close the open job with its result; its images are removed."""
        event = JobEvent.WITHDRAW if result.status is JobStatus.CANCELLED else JobEvent.END
        assert TRANSITIONS[self.step, event] is JobStep.IDLE
        others = [one for one in self._file.results if one.job_id != result.job_id]
        results = [*others, result]
        self._save(_File(open_job=None, results=results[-MAX_RESULTS:]))
        self.drop_files()

    def delivered(self, job_id: str) -> None:
        """Record that the cloud acknowledged the result of a closed job."""
        results = [
            msgspec.structs.replace(one, delivered=True) if one.job_id == job_id else one
            for one in self._file.results
        ]
        self._save(_File(open_job=self.open_job, results=results))

    def drop_files(self) -> None:
        """Remove the images of the job that is done."""
        for path in self.folder.glob("image-*.bin"):
            path.unlink(missing_ok=True)

    def _store(self, job: OpenJob) -> OpenJob:
        self._save(_File(open_job=job, results=self._file.results))
        return job

    def _load(self) -> _File:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return _File()
        try:
            file = msgspec.json.decode(data, type=_File)
        except (msgspec.DecodeError, ValueError) as error:
            aside = self._path.with_suffix(".damaged")
            self._path.replace(aside)
            raise JournalDamaged(
                f"the FOTA journal cannot be read: {error}",
                hint=f"it was kept as {aside}; the next start begins a new one",
            ) from error
        if file.format != FORMAT:
            raise JournalDamaged(
                f"the FOTA journal {self._path} has format {file.format}, not {FORMAT}",
                hint="it was written by another version of cellagent",
            )
        return file

    def _save(self, file: _File) -> None:
        # A fixed name until it is whole: a kill leaves one such file at most.
        unfinished = self._path.with_suffix(".new")
        write_private(self._path, msgspec.json.encode(file), unfinished=unfinished)
        self._file = file


class JobsHeld(ResourceUnavailable):
    """Another process carries out this kit's jobs."""

    kind = "fota-busy"


@asynccontextmanager
async def sole_worker(folder: Path, patience_s: float) -> AsyncIterator[ProcessLock]:
    """Hold a kit's jobs, by a lock: no second process works on them.

    A look for jobs is over in a moment, and is waited for. Raises JobsHeld after `patience_s`.
    """
    make_private_folder(folder)
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + patience_s
    while True:
        try:
            lock = ProcessLock(folder / "lock")
            break
        except HeldByAnother as held:
            if loop.time() >= give_up_at:
                raise JobsHeld(
                    f"another process carries out this kit's jobs: {held.holder}",
                    hint="wait until the job ends; `cellagent status` shows what the agent does",
                ) from held
        await asyncio.sleep(_LOOK_S)
    try:
        yield lock
    finally:
        lock.release()
