"""Puts an upload, whole or in parts, to the storage behind the URLs that the service has signed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, ClassVar
from xml.sax.saxutils import escape

import msgspec

from agent import errors
from agent.call import Call, Host, Request, Response, Scheme
from agent.http import HttpTransport
from agent.http.refusals import service_message
from agent.http.transport import SLOWEST_BYTES_PER_S, StreamedResponse
from agent.observability.api.resources import USER
from agent.observability.ingest.uploads import FileKind, UploadProject
from agent.retry import check_available

IN_PARTS_FROM = 8 * 1024 * 1024
"""Bytes from which a file is sent in parts; a smaller one is sent again as a whole."""


@dataclass(frozen=True, slots=True)
class PreparedParts:
    """The URLs for the parts, the URL that completes them, and the token of the commit."""

    part_urls: tuple[str, ...] = field(repr=False)
    """Signed, as `complete_upload_url` is: anyone who has one may put bytes there."""
    complete_upload_url: str = field(repr=False)
    token: str = field(repr=False)


class _PreparedParts(msgspec.Struct):
    data: PreparedParts


@dataclass(frozen=True, slots=True)
class PrepareParts(Call[PreparedParts]):
    """Ask for URLs for the parts of a file of `size` bytes: POST .../upload_multipart."""

    host: ClassVar[Host] = Host.FILES
    schemes: ClassVar[tuple[Scheme, ...]] = USER

    kind: FileKind
    size: int
    project: UploadProject

    def request(self) -> Request:
        """Return what to send."""
        body = {"kind": self.kind.wire_name, "size": self.size}
        return Request("POST", f"{self.project.path}/upload_multipart", json=body)

    def parse(self, response: Response) -> PreparedParts:
        """Return URLs and token. Raises BadAnswer, also if there is no URL."""
        data = response.decode(_PreparedParts).data
        if not data.part_urls:
            raise errors.BadAnswer("the answer names no part to upload", status=response.status)
        return data


def part_bounds(size: int, count: int) -> list[tuple[int, int]]:
    """Return begin and end of each of `count` parts: of equal size, the rest in the last."""
    each = size // count
    starts = [number * each for number in range(count)]
    return list(zip(starts, [*starts[1:], size], strict=True))


def completion_body(tags: Sequence[str]) -> bytes:
    """Return the XML that completes the parts at the storage; `tags` are their ETags."""
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
        for number, tag in enumerate(tags, start=1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


_PIECE = 256 * 1024  # bytes that are read at a time
_EXPIRED = frozenset({401, 403, 404, 410})  # answers of a storage whose URL has expired


class UploadUrlExpired(errors.Unavailable):
    """The storage does not know the URL any more: the upload must be prepared again."""


async def put_bytes(
    transport: HttpTransport,
    url: str,
    file: IO[bytes],
    bounds: tuple[int, int],
    *,
    gzipped: bool = False,
    sent: Callable[[int], None] | None = None,
) -> str:
    """Put the bytes of `file` between `bounds`; return the ETag that the storage gave.

    `sent` is called with the offset reached in the file. Raises UploadUrlExpired, Unavailable,
    AgentError.
    """
    start, end = bounds
    headers = {"content-type": "application/octet-stream", "content-length": str(end - start)}
    if gzipped:
        headers["content-encoding"] = "gzip"
    try:
        async with (
            asyncio.timeout(60 + (end - start) / SLOWEST_BYTES_PER_S),
            transport.open(
                "PUT", url, headers=headers, content=_pieces(file, bounds, sent)
            ) as stream,
        ):
            words = b"" if stream.status < 300 else await _start_of(stream)
            _check(Response(stream.status, stream.headers, words))
            return stream.headers.get("etag", "")
    except TimeoutError as exc:
        raise errors.Unavailable("the upload is slower than 4 KiB/s: it was given up") from exc


async def complete_parts(transport: HttpTransport, url: str, body: bytes) -> None:
    """Report to the storage that all parts are there.

    Raises UploadUrlExpired, Unavailable, AgentError.
    """
    headers = {"content-type": "application/xml"}
    answer = await transport.exchange("POST", url, headers=headers, content=body, max_bytes=65536)
    _check(answer)
    # An object store answers 200, then joins the parts: whether it could is in the body.
    if b"<Error>" in answer.content:
        _, words = service_message(answer)
        raise errors.Unavailable(f"the storage could not complete the upload: {words}")


async def _start_of(stream: StreamedResponse) -> bytes:
    """Return the beginning of a body: all that arrived, if the connection breaks in it."""
    body = b""
    with suppress(errors.AgentError):
        async for chunk in stream.chunks():
            body += chunk
            if len(body) >= _PIECE:
                break
    return body


def _check(answer: Response) -> None:
    status = answer.status
    if 200 <= status < 300:
        return
    _, words = service_message(answer)
    message = f"the storage answered {status} to the upload" + (f": {words}" if words else "")
    if status in _EXPIRED:
        raise UploadUrlExpired(message, status=status)
    check_available(message, status, answer.headers, datetime.now(UTC))
    if 300 <= status < 400:
        raise errors.BadAnswer(f"the storage redirects the upload ({status})", status=status)
    raise errors.InvalidRequest(message, status=status)


async def _pieces(
    file: IO[bytes], bounds: tuple[int, int], sent: Callable[[int], None] | None
) -> AsyncIterator[bytes]:
    at, end = bounds
    file.seek(at)
    while at < end and (piece := await asyncio.to_thread(file.read, min(_PIECE, end - at))):
        yield piece
        at += len(piece)
        if sent is not None:
            sent(at)
