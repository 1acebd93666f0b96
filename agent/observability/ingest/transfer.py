"""Uploads one large file: prepare, put, commit. After a break it continues where it stopped."""

import asyncio
import gzip
import hashlib
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agent import errors
from agent.http import HttpClient, HttpTransport
from agent.observability.ingest import storage, uploads
from agent.observability.ingest.device_identity import DeviceIdentity
from agent.observability.ingest.upload_journal import UploadJournal, UploadProgress
from agent.retry import NOT_TAKEN_STATUSES, backoff_s

Progress = Callable[[int, int], None]
"""Called with the bytes sent and the size of the file; less is sent again after a break."""
_PIECE = 256 * 1024  # bytes that are compressed at a time
TRIES = 5
FIRST_WAIT_S, LONGEST_WAIT_S = 2.0, 32.0


@dataclass(frozen=True, slots=True)
class UploadSource:
    """An open file and its description for the service; `md5` is of the bytes as sent."""

    file: IO[bytes]
    name: str
    size: int
    md5: str
    gzipped: bool = False


@contextmanager
def file_source(path: Path, *, compress: bool = False) -> Iterator[UploadSource]:
    """Open `path`; with `compress` a gzipped copy of it. Raises AgentError, so if it is empty."""
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                hint = "name the file that the build made, once it has ended well"
                raise errors.UsageError(f"{path} is empty", hint=hint)
            if not compress:
                yield _source(file, sent_name(path), gzipped=False)
                return
            # SIM115 does not apply: the copy is closed, and thereby removed, with the block.
            with tempfile.TemporaryFile() as copy:
                with gzip.GzipFile("", "wb", fileobj=copy, mtime=0) as packed:
                    shutil.copyfileobj(file, packed, _PIECE)
                yield _source(copy, sent_name(path), gzipped=True)
    except OSError as exc:
        raise errors.AgentError(f"{path}: {exc.strerror or exc}") from exc


def sent_name(path: Path) -> str:
    """Return the name of a file as the service gets it: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path.name).decode("utf-8", "backslashreplace")


def _source(file: IO[bytes], name: str, *, gzipped: bool) -> UploadSource:
    file.seek(0)
    digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))  # type: ignore[arg-type]
    return UploadSource(file, name, file.tell(), digest.hexdigest(), gzipped)


@dataclass(frozen=True, slots=True)
class Upload:
    """The description of an upload, without its bytes."""

    kind: uploads.FileKind
    device: DeviceIdentity | None = None
    details: Mapping[str, object] | None = None
    project: uploads.UploadProject | None = None
    """If given, a user's or organization's credential is used, else the project key."""
    request_id: str = ""
    """The same at every try; the service ignores what it does not know."""
    anew: bool = False
    """Whether it is sent once more where it may be there: that does no harm, or less than none."""


async def transfer(
    client: HttpClient,
    upload: Upload,
    source: UploadSource,
    *,
    progress: Progress | None = None,
    tries: int = TRIES,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    journal: UploadJournal | None = None,
) -> None:
    """Upload `source`. Raises what the client raises, and Unavailable after `tries` tries.

    A storage that asks for a longer wait than LONGEST_WAIT_S is left to the caller.
    With a `journal` it continues where an earlier run was interrupted: with the first missing
    part, or with the commit. The URL for a whole file is used for one try only. A token commits
    once: if it is refused after a commit without an answer, the file may be there. It is sent
    `anew`, or that is raised as AgentError, and the journal keeps it.
    """
    journal = journal or UploadJournal()
    resumed = journal.progress is not None
    attempt = 1
    while True:
        state = journal.progress or await _prepare(client, upload, source)
        commit_sent = state.commit_sent
        try:
            if not state.whole:
                await _put(client.transport, state, source, journal, progress)
            await _commit(client, upload, source, state, journal)
            return
        except errors.Unavailable as error:
            if state.whole and not state.commit_sent:
                raise  # the client has retried the commit: a later run continues with it
            if isinstance(error, storage.UploadUrlExpired) or not (state.whole or state.part_urls):
                journal.save(None)
            asked_s = error.retry_after_s or 0.0
            in_vain = isinstance(error, errors.NothingListens | errors.Untrusted)
            if attempt == tries or asked_s > LONGEST_WAIT_S or in_vain:
                raise
        except errors.ServiceRefusal as error:
            is_unknown = isinstance(error, errors.NotFound | errors.InvalidRequest)
            may_be_there = commit_sent and is_unknown
            if may_be_there and not upload.anew:
                raise _may_be_there(source, error) from error
            journal.save(None)
            if not (resumed or may_be_there):
                raise
            # What an earlier run or try was given has expired, or is used up.
            resumed = False
            continue
        first_s, longest_s = FIRST_WAIT_S, LONGEST_WAIT_S
        await wait(backoff_s(attempt, first_s=first_s, longest_s=longest_s, at_least_s=asked_s))
        attempt += 1


async def _prepare(client: HttpClient, upload: Upload, source: UploadSource) -> UploadProgress:
    large = source.size >= storage.IN_PARTS_FROM and not source.gzipped
    if large and upload.kind is uploads.FileKind.OTA and upload.project is not None:
        with suppress(errors.NotFound):  # a service that takes it in one piece only
            parts = await client.send(
                storage.PrepareParts(upload.kind, source.size, upload.project)
            )
            return UploadProgress(
                token=parts.token,
                part_urls=list(parts.part_urls),
                complete_url=parts.complete_upload_url,
            )
    prepared = await client.send(
        uploads.PrepareUpload(
            upload.kind, source.size, upload.device, source.gzipped, upload.project
        )
    )
    return UploadProgress(token=prepared.token, url=prepared.upload_url)


async def _put(
    transport: HttpTransport,
    state: UploadProgress,
    source: UploadSource,
    journal: UploadJournal,
    progress: Progress | None,
) -> None:
    def sent(at: int) -> None:
        if progress is not None:
            progress(at, source.size)

    if state.part_urls:
        bounds = storage.part_bounds(source.size, len(state.part_urls))
        for number in range(len(state.tags), len(bounds)):
            url = state.part_urls[number]
            tag = await storage.put_bytes(transport, url, source.file, bounds[number], sent=sent)
            if not tag:
                raise errors.BadAnswer(f"the storage gave no ETag for part {number + 1}")
            state.tags.append(tag)
            journal.save(state)
        await storage.complete_parts(
            transport, state.complete_url, storage.completion_body(state.tags)
        )
    else:
        whole = (0, source.size)
        await storage.put_bytes(
            transport, state.url, source.file, whole, gzipped=source.gzipped, sent=sent
        )
    state.whole = True
    journal.save(state)


async def _commit(
    client: HttpClient,
    upload: Upload,
    source: UploadSource,
    state: UploadProgress,
    journal: UploadJournal,
) -> None:
    sent_before = state.commit_sent
    state.commit_sent = True
    journal.save(state)  # before it is sent: this process may end before the answer
    commit = uploads.CommitUpload(
        upload.kind,
        state.token,
        name=source.name,
        md5=source.md5,
        details=upload.details or {},
        project=upload.project,
        request_id=upload.request_id,
    )
    try:
        await client.send(commit)
    except errors.Unavailable as error:
        if not error.sent or error.status in NOT_TAKEN_STATUSES:
            state.commit_sent = sent_before
            journal.save(state)
        raise


def _may_be_there(source: UploadSource, error: errors.ServiceRefusal) -> errors.AgentError:
    return errors.AgentError(
        f"{source.name}: the answer to its commit was lost, and the token of the upload is now "
        f"refused: the service has the file, or the upload has expired ({error})",
        hint="look whether it is there; if not, the same command with --again sends it anew",
        status=error.status,
    )
