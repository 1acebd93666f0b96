"""FOTA jobs: reading an execution, deciding what to do about it, the states to report. No I/O.

The device cloud's job model, clause D9.2; facts of its form: the public OpenAPI document and the
vendor's REST client. The agent reports IN_PROGRESS, never DOWNLOADING: an execution in DOWNLOADING
is no longer handed out, so a crash would lose it.
"""

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from agent.errors import AgentError
from agent.fota.job_step import JobStep
from agent.json_value import JSONValue, object_in, text_in
from at.protocol.state_machine import Transitions

MAX_IMAGE_BYTES = 1 << 30
"""No image of this family is near it; a larger declared size is a mistake or an attack."""
_DELTA = re.compile(r"_update_from_(\d[\w.-]*?)_to_\d[^/]*$", re.ASCII)
DETAIL_LIMIT = 250
"""Characters of a status detail: enough for two sentences."""


class FirmwareType(Enum):
    """The part of a kit that an image is for."""

    APP = "APP"
    BOOT = "BOOT"
    MODEM = "MODEM"
    MDM_FULL = "MDM_FULL"
    SMP = "SMP"
    CUSTOM = "CUSTOM"
    SOFTDEVICE = "SOFTDEVICE"
    BOOTLOADER = "BOOTLOADER"


MODEM_TYPES = frozenset({FirmwareType.MODEM, FirmwareType.MDM_FULL})
MCUBOOT_TYPES = frozenset({FirmwareType.APP, FirmwareType.BOOT, FirmwareType.SMP})


class JobStatus(Enum):
    """The states of an execution at the device cloud."""

    QUEUED = "QUEUED"
    IN_PROGRESS = "IN_PROGRESS"
    FAILED = "FAILED"
    SUCCEEDED = "SUCCEEDED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    REJECTED = "REJECTED"
    DOWNLOADING = "DOWNLOADING"

    @property
    def final(self) -> bool:
        """Whether no other state may follow."""
        return all(before is not self for before, _ in TRANSITIONS)


TRANSITIONS = Transitions(
    {
        (JobStatus.QUEUED, JobStatus.IN_PROGRESS): JobStatus.IN_PROGRESS,
        (JobStatus.QUEUED, JobStatus.REJECTED): JobStatus.REJECTED,
        (JobStatus.IN_PROGRESS, JobStatus.SUCCEEDED): JobStatus.SUCCEEDED,
        (JobStatus.IN_PROGRESS, JobStatus.FAILED): JobStatus.FAILED,
        (JobStatus.IN_PROGRESS, JobStatus.REJECTED): JobStatus.REJECTED,
        (JobStatus.IN_PROGRESS, JobStatus.TIMED_OUT): JobStatus.TIMED_OUT,
        (JobStatus.DOWNLOADING, JobStatus.IN_PROGRESS): JobStatus.IN_PROGRESS,
        (JobStatus.DOWNLOADING, JobStatus.SUCCEEDED): JobStatus.SUCCEEDED,
        (JobStatus.DOWNLOADING, JobStatus.FAILED): JobStatus.FAILED,
        (JobStatus.DOWNLOADING, JobStatus.REJECTED): JobStatus.REJECTED,
        (JobStatus.DOWNLOADING, JobStatus.TIMED_OUT): JobStatus.TIMED_OUT,
    }
)
"""What a device may report of a job. The event is the report of a state, which then is the job's.
Only the cloud cancels a job."""


class MalformedJob(AgentError):
    """The job's document cannot be carried out; the message is the reason to report."""

    kind = "fota-job"


class JobWithdrawn(Exception):
    """The cloud cancelled or replaced the job while it was carried out."""


class JobEnded(Exception):
    """A step raises this when the job has its result: nothing more is done for it.

    `hint` is for who runs this host, and not reported.
    """

    def __init__(self, status: JobStatus, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Execution:
    """The execution of a job on one device: its state, and the document as the cloud sent it."""

    job_id: str
    device_id: str
    status: JobStatus
    document: Mapping[str, JSONValue]


@dataclass(frozen=True, slots=True)
class Job:
    """A job document that is complete. `host` and `paths` are not checked yet."""

    job_id: str
    kind: FirmwareType
    host: str
    """"" for a release, whose path is the whole address of its file."""
    paths: tuple[str, ...]
    """One path; two for a BOOT job with a build for each slot; none for what the kit found itself,
    which this host never sees."""
    size_bytes: int
    """0 where none is declared: of a release."""
    version: str = ""
    bundle_id: str = ""
    sha256: str = ""
    """Digest of the file, hex, where the job names one."""
    signature: bytes = b""
    """Signature over the file, where the job names one."""
    md5: str = ""
    """Of a release: the digest of its file, hex, "" where it names none."""
    delta_from: str = ""
    """The version that a delta leads from, where its name tells it."""

    @property
    def by_kit(self) -> bool:
        """Whether the kit's own client found it, and downloads and checks it."""
        return not self.paths

    def summary(self) -> str:
        """Return what the job is about, for a person: "APP v2.0.1"."""
        return f"{self.kind.value} {self.version}".strip()


def read_execution(body: JSONValue) -> Execution:
    """Read the answer of FetchCurrentPendingFOTAJobExecution, decoded from JSON.

    The document is left as it is: `read_job` reads it, so that a malformed one can be REJECTED by
    its id. Raises MalformedJob without an id or a known state: then there is nothing to report to.
    """
    if not isinstance(body, dict):
        raise MalformedJob(f"the device cloud's job is a JSON {type(body).__name__}, not an object")
    job_id = body.get("jobId")
    if not isinstance(job_id, str) or not re.fullmatch(r"[A-Za-z0-9_.:-]{1,128}", job_id):
        raise MalformedJob(
            "the device cloud's job has no usable jobId",
            hint="is it the device cloud that answers there? `cellagent config show hosts`",
        )
    status = body.get("status", JobStatus.QUEUED.value)
    try:
        state = JobStatus(status)
    except ValueError:
        raise MalformedJob(
            f"job {job_id} is in an unknown state: {str(status)[:40]!r}",
            hint="nothing is done for it: cancel it at the service, or install a newer cellagent",
        ) from None
    return Execution(
        job_id=job_id,
        device_id=text_in(body, "deviceId"),
        status=state,
        document=object_in(body, "jobDocument"),
    )


def read_job(job_id: str, document: Mapping[str, JSONValue]) -> Job:
    """Read a job's document. Raises MalformedJob, which names the field that is wrong."""
    kind = document.get("firmwareType")
    try:
        firmware_type = FirmwareType(kind)
    except ValueError:
        what = (
            "names no firmwareType" if kind is None else f"is for {_quoted(kind)}, not known here"
        )
        raise MalformedJob(f"the job {what}") from None
    host, path = document.get("host"), document.get("path")
    if not isinstance(host, str) or not host.strip():
        raise MalformedJob("the job names no host to download from")
    if not isinstance(path, str) or not path.strip():
        raise MalformedJob("the job names no path to download from")
    paths = tuple(path.strip().split(" "))
    if "" in paths or len(paths) > (2 if firmware_type is FirmwareType.BOOT else 1):
        raise MalformedJob(f"the path of this {firmware_type.value} job names {len(paths)} files")
    return Job(
        job_id=job_id,
        kind=firmware_type,
        host=host.strip(),
        paths=paths,
        size_bytes=_size(document.get("fileSize")),
        version=_optional(document, "version"),
        bundle_id=_optional(document, "bundleId"),
        sha256=digest_of(document),
        signature=_signature(document),
        delta_from=delta_from(firmware_type, paths[0]),
    )


def delta_from(kind: FirmwareType, file: str) -> str:
    """Return the version that a modem's delta leads from, as its maker names the file, or ""."""
    found = _DELTA.search(file)
    return found[1] if found and kind is FirmwareType.MODEM else ""


def reject_reason(
    job: Job, installer: str, types: frozenset[FirmwareType], too_old: str = ""
) -> str:
    """Return why a kit cannot take the job, "" if it can. Called before any download.

    `types` are what the installer can put on it; `too_old` is the modem's firmware where that is
    older than 1.3.0 (clause D1.4).
    """
    if job.kind in MODEM_TYPES and too_old:
        return (
            "no update over the air leads from modem firmware before 1.3.0 to 1.3.x, and this "
            f"modem runs {too_old}: update it by cable, with the maker's programmer"
        )
    if job.kind not in types:
        able = ", ".join(sorted(kind.value for kind in types)) or "nothing"
        return f"the installer {installer} cannot install {job.kind.value} here, only {able}"
    return ""


class JobAction(Enum):
    """What to do, given the job that the cloud offers and the job that is open in the journal."""

    IDLE = "no job"
    TAKE = "a new job"
    RESUME = "our own job, unfinished"
    REPORT_AGAIN = "our own job, done: its result did not arrive"
    DROP = "our unfinished job is gone from the cloud: it was cancelled"
    FINISH = "our job is gone or replaced, yet its install had begun"
    LEAVE = "another device's or program's work"


_OFFERED = {JobStatus.QUEUED, JobStatus.IN_PROGRESS}


def next_action(
    offered: Execution | None, *, open_job: str, step: JobStep, finished: bool
) -> JobAction:
    """Return the next action for any pair of an offered and an open job.

    `open_job` and `step` are those of the journal, `finished` whether it holds a result of the
    offered job. An install that has begun is always brought to its end: a half-installed kit is
    worse than a job that nobody waits for.
    """
    same = offered is not None and offered.job_id == open_job
    if step is not JobStep.IDLE and not same:
        return JobAction.FINISH if step.in_install else JobAction.DROP
    if offered is None:
        return JobAction.IDLE
    if offered.status not in _OFFERED:
        # A state that our own fetch never returns: handed out by mistake, or another's work.
        return JobAction.DROP if same and offered.status is JobStatus.CANCELLED else JobAction.LEAVE
    if finished:
        return JobAction.REPORT_AGAIN
    return JobAction.RESUME if same else JobAction.TAKE


def detail_text(text: str) -> str:
    """Return `text` as a status detail: one line, printable, of at most DETAIL_LIMIT characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= DETAIL_LIMIT else line[: DETAIL_LIMIT - 1] + "…"


def _optional(document: Mapping[str, JSONValue], name: str) -> str:
    value = document.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > 256 or not value.isprintable():
        raise MalformedJob(f"the job's {name} is {_quoted(value)}, not a short text")
    return value.strip()


def _size(value: object) -> int:
    # JSON has one number type: 1024.0 is 1024, true is not 1. The service also writes texts.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch("[0-9]{1,16}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedJob(f"the job's fileSize is {_quoted(value)}, not a number of bytes")
    if not 0 < value <= MAX_IMAGE_BYTES:
        raise MalformedJob(f"the job's fileSize of {_quoted(value)} bytes is no size of an image")
    return value


def digest_of(document: Mapping[str, JSONValue]) -> str:
    """Return the SHA-256 that a job says its file has, "" for none. Raises MalformedJob."""
    value = document.get("sha256")
    if value is None:
        value = document.get("digest")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedJob(f"the job's digest is {_quoted(value)}, not a text")
    digest = value.strip().lower().removeprefix("sha256:")
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise MalformedJob("the job's digest is no SHA-256 in hex")
    return digest


def _signature(document: Mapping[str, JSONValue]) -> bytes:
    value = document.get("signature")
    if value is None:
        return b""
    if isinstance(value, str):
        with suppress(ValueError):
            return base64.b64decode(value, validate=True)
    raise MalformedJob("the job's signature is not base64")


def _quoted(value: object) -> str:
    return "missing" if value is None else repr(value)[:40]
