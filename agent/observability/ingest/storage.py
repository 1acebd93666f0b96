"""Puts the bytes of an upload to the storage behind the URLs that the service has signed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent import errors
from agent.http.transport import SLOWEST_BYTES_PER_S
from agent.retry import RETRIED_STATUSES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import IO

    from agent.http import HttpTransport

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
            _check(stream.status)
            return stream.headers.get("etag", "")
    except TimeoutError as exc:
        raise errors.Unavailable("the upload is slower than 4 KiB/s: it was given up") from exc


async def complete_parts(transport: HttpTransport, url: str, body: bytes) -> None:
    """Report to the storage that all parts are there.

    Raises UploadUrlExpired, Unavailable, AgentError.
    """
    headers = {"content-type": "application/xml"}
    answer = await transport.exchange("POST", url, headers=headers, content=body, max_bytes=65536)
    _check(answer.status)


def _check(status: int) -> None:
    if 200 <= status < 300:
        return
    message = f"the storage answered {status} to the upload"
    if status in _EXPIRED:
        raise UploadUrlExpired(message, status=status)
    if status in RETRIED_STATUSES:
        raise errors.Unavailable(message, status=status)
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
