"""Updates that are no jobs of the cloud, each as a job of our own: by release, or by the kit.

The observability service offers a device its newest release; or the kit's own client finds an
update, downloads it and checks it. No I/O.

Facts: the service's public page on the latest release of a device, and its command line tool. A
release is no job: nothing is reported of it, since the service sees the new version in what the
device sends next; and one that the kit did not keep is offered again and again. So its tries are
counted here, by the ids of their results in the journal.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.errors import BadAnswer, RefusedByRule
from agent.fota.jobs import (
    Execution,
    FirmwareType,
    Job,
    JobStatus,
    MalformedJob,
    delta_from,
    digest_of,
    read_job,
)
from agent.fota.journal import JobResult
from agent.fota.versions import same_version
from agent.json_value import JSONValue

TRY_AGAIN = "`cellagent fota pull --again` tries it at once"
WAITS = (timedelta(days=1), timedelta(days=3))
"""After the first and the second try; there is no fourth."""

_PREFIX, _BY_KIT = "release/", "kit/"


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a kit whose releases are asked for, by the names that the service has for it."""

    kind: FirmwareType
    device_serial: str
    hardware_version: str
    software_type: str
    running: str
    """The version that it runs, "" where that is not known: then no delta is offered."""


class ReleaseNotKept(RefusedByRule):
    """The kit did not take a release, or did not keep it: it is not tried again now."""

    kind = "fota-release"


def is_of_cloud(job_id: str) -> bool:
    """Return whether a job is the device cloud's, which has none with a "/" in its id."""
    return "/" not in job_id


def is_release(job_id: str) -> bool:
    """Return whether a job is a release."""
    return job_id.startswith(_PREFIX)


def is_by_kit(job_id: str) -> bool:
    """Return whether a job is what the kit's own client found."""
    return job_id.startswith(_BY_KIT)


def offered_by_kit(
    kind: FirmwareType,
    device_id: str,
    running: str,
    results: Sequence[JobResult],
    now: datetime,
    *,
    again: bool = False,
) -> Execution:
    """Return the job of an update that the kit's own client has found; it does not say which.

    So it is named by the version that it leads from. Raises as `offered_release`.
    """
    stem = f"{_BY_KIT}{kind.value}/{running}"
    document: dict[str, JSONValue] = {"firmwareType": kind.value}
    number = _next_try(stem, f"an update of {running}", results, now, again=again)
    return Execution(f"{stem}.{number}", device_id, JobStatus.QUEUED, document)


def offered_release(
    release: Mapping[str, JSONValue],
    component: Component,
    results: Sequence[JobResult],
    now: datetime,
    *,
    again: bool = False,
) -> Execution | None:
    """Return the job that a release is, None where its version runs already.

    `release` is the service's answer, `results` are those of the kit's journal. Raises BadAnswer
    for a release without a file for this component, ReleaseNotKept for one whose tries are used
    up for now, but not where a person asks for it `again`.
    """
    version = _text(release, "version")
    if not version:
        raise BadAnswer("the service's release names no version")
    if component.running and same_version(version, component.running):
        return None
    artifact = _artifact(release, component)
    document: dict[str, JSONValue] = {
        "firmwareType": component.kind.value,
        "version": version,
        "url": _text(artifact, "url"),
        "md5": _text(artifact, "md5").lower(),
        "filename": _text(artifact, "filename"),
        "sha256": artifact.get("sha256") or None,
    }
    if not document["url"]:
        raise BadAnswer(f"the file of release {version} has no address")
    names = (component.software_type, component.hardware_version, version, document["md5"])
    one = hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:8]
    stem = f"{_PREFIX}{version}/{one}"
    number = _next_try(stem, f"release {version}", results, now, again=again)
    return Execution(
        job_id=f"{stem}.{number}",
        device_id=component.device_serial,
        status=JobStatus.QUEUED,
        document=document,
    )


def read_offered(job_id: str, document: Mapping[str, JSONValue]) -> Job:
    """Read what an Execution offers, of either source. Raises MalformedJob."""
    if is_of_cloud(job_id):
        return read_job(job_id, document)
    try:
        kind = FirmwareType(document.get("firmwareType"))
    except ValueError:
        raise MalformedJob("the release is for no type of firmware") from None
    return Job(
        job_id=job_id,
        kind=kind,
        host="",
        paths=() if is_by_kit(job_id) else (_text(document, "url"),),
        size_bytes=0,
        version=_text(document, "version"),
        sha256=digest_of(document),
        md5=_text(document, "md5"),
        delta_from=delta_from(kind, _text(document, "filename")),
    )


def _next_try(
    stem: str, what: str, results: Sequence[JobResult], now: datetime, *, again: bool
) -> int:
    """Return the number of the next try of a job, whose id is `stem.number`."""
    tries = [
        result
        for result in results
        if result.job_id.rpartition(".")[0] == stem and result.status is not JobStatus.CANCELLED
    ]
    if tries and not again:
        _require_due(what, tries, now)
    return len(tries) + 1


def _require_due(what: str, tries: Sequence[JobResult], now: datetime) -> None:
    last = tries[-1]
    text = f"{what} was tried at {last.at}: {last.status.value}: {last.detail}"
    if len(tries) > len(WAITS):
        raise ReleaseNotKept(f"{text}; after {len(tries)} tries it is left", hint=TRY_AGAIN)
    at, wait = datetime.fromisoformat(last.at), WAITS[len(tries) - 1]
    if abs(now - at) < wait:  # one far in the future was dated by a clock that was wrong
        when = (at + wait).isoformat(timespec="seconds")
        raise ReleaseNotKept(f"{text}; it is tried again from {when}", hint=TRY_AGAIN)


def _artifact(release: Mapping[str, JSONValue], component: Component) -> Mapping[str, JSONValue]:
    """Return the release's file for a component; a field that is absent fits any."""
    artifacts = release.get("artifacts")
    for artifact in artifacts if isinstance(artifacts, list) else ():
        if not isinstance(artifact, dict) or artifact.get("type", "firmware") != "firmware":
            continue
        hardware, software = artifact.get("hardware_version"), artifact.get("software_type")
        if hardware in (None, component.hardware_version) and (
            software in (None, component.software_type)
        ):
            return artifact
    raise BadAnswer(
        f"release {_text(release, 'version')} has no file for hardware "
        f"{component.hardware_version} and software {component.software_type}"
    )


def _text(fields: Mapping[str, JSONValue], name: str) -> str:
    value = fields.get(name)
    return value.strip() if isinstance(value, str) and value.isprintable() else ""
