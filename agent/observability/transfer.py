"""Sends one large file: prepare, put, commit; from the beginning again after a break."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.errors import AgentError, BadAnswer, InvalidRequest, Unavailable
from agent.observability.uploads import (
    CommitCoredump,
    CommitFile,
    FileKind,
    PrepareCoredump,
    PrepareFile,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from pathlib import Path
    from typing import IO

    from agent.http import HttpClient
    from agent.observability.device_identity import DeviceIdentity
    from agent.observability.uploads import Prepared, Project

    Progress = Callable[[int, int], None]
    """Called with the bytes sent and the bytes there are; it starts anew after a break."""

TRIES = 5
FIRST_WAIT_S = 2.0
SLOWEST_BYTES_PER_S = 4096
"""A transfer slower than this is given up."""

_PIECE = 256 * 1024
_EXPIRED = frozenset({401, 403, 404, 410})  # what a storage says of a place that is no more
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Source:
    """An open file with what the service wants to know of it; `md5` is of the bytes as sent."""

    file: IO[bytes]
    name: str
    size: int
    md5: str
    gzipped: bool = False


@contextmanager
def file_source(path: Path, *, compress: bool = False) -> Iterator[Source]:
    """Open `path`; with `compress` a gzipped copy of it. Raises AgentError."""
    try:
        with path.open("rb") as file:
            if not compress:
                yield _source(file, path.name, gzipped=False)
                return
            # SIM115 does not apply: the copy is closed, and thereby removed, with the block.
            with tempfile.TemporaryFile() as copy:
                with gzip.GzipFile("", "wb", fileobj=copy, mtime=0) as packed:
                    shutil.copyfileobj(file, packed, _PIECE)
                yield _source(copy, path.name, gzipped=True)
    except OSError as exc:
        raise AgentError(f"{path}: {exc.strerror or exc}") from exc


def _source(file: IO[bytes], name: str, *, gzipped: bool) -> Source:
    file.seek(0)
    digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))  # type: ignore[arg-type]
    return Source(file, name, file.tell(), digest.hexdigest(), gzipped)


@dataclass(frozen=True, slots=True)
class Upload:
    """What is uploaded, beside its bytes."""

    kind: FileKind
    device: DeviceIdentity | None = None
    details: Mapping[str, Any] | None = None
    project: Project | None = None
    """Given, a user's or organization's credential is used, else the project key."""


async def transfer(
    client: HttpClient,
    upload: Upload,
    source: Source,
    *,
    progress: Progress | None = None,
    tries: int = TRIES,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Bring `source` to the service. Raises what the client raises, and Unavailable at the end.

    A place is good for one try: after a break a new one is asked for, and all is sent again.
    """
    for attempt in range(1, tries + 1):
        prepared = await _prepare(client, upload, source)
        try:
            await _put(client, prepared, source, progress)
        except Unavailable:
            if attempt == tries:
                raise
            await wait(FIRST_WAIT_S * 2 ** (attempt - 1))
            continue
        await _commit(client, upload, source, prepared)
        return


async def _prepare(client: HttpClient, upload: Upload, source: Source) -> Prepared:
    kind = PrepareCoredump if upload.kind.is_coredump else PrepareFile
    return await client.send(
        kind(upload.kind, source.size, upload.device, source.gzipped, upload.project)
    )


async def _commit(client: HttpClient, upload: Upload, source: Source, prepared: Prepared) -> None:
    kind = CommitCoredump if upload.kind.is_coredump else CommitFile
    await client.send(
        kind(
            upload.kind,
            prepared.token,
            name=source.name,
            md5=source.md5,
            details=upload.details or {},
            project=upload.project,
        )
    )


async def _put(
    client: HttpClient, prepared: Prepared, source: Source, progress: Progress | None
) -> None:
    """Put the bytes where the service said, with no credential: the URL itself is one."""
    headers = {"content-type": "application/octet-stream", "content-length": str(source.size)}
    if source.gzipped:
        headers["content-encoding"] = "gzip"
    try:
        async with (
            asyncio.timeout(60 + source.size / SLOWEST_BYTES_PER_S),
            client.wire.open(
                "PUT", prepared.upload_url, headers=headers, content=_pieces(source, progress)
            ) as stream,
        ):
            status = stream.status
    except TimeoutError as exc:
        raise Unavailable("the upload is slower than 4 KiB/s: it was given up") from exc
    if 200 <= status < 300:
        return
    if status in _EXPIRED or status in _AGAIN:
        raise Unavailable(f"the storage answered {status} to the upload", status=status)
    if 300 <= status < 400:
        raise BadAnswer(f"the storage redirects the upload ({status})", status=status)
    raise InvalidRequest(f"the storage answered {status} to the upload", status=status)


async def _pieces(source: Source, progress: Progress | None) -> AsyncIterator[bytes]:
    source.file.seek(0)
    sent = 0
    while piece := await asyncio.to_thread(source.file.read, _PIECE):
        yield piece
        sent += len(piece)
        if progress is not None:
            progress(sent, source.size)
