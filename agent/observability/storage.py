"""Puts bytes where the service said, with no credential: the URL itself is one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent.errors import BadAnswer, InvalidRequest, Unavailable
from agent.http.wire import SLOWEST_BYTES_PER_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import IO

    from agent.http import Wire

_PIECE = 256 * 1024
_EXPIRED = frozenset({401, 403, 404, 410})  # what a storage says of a place that is no more
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class PlaceGone(Unavailable):
    """The storage does not know the place any more: another one must be asked for."""


async def put(
    wire: Wire,
    url: str,
    file: IO[bytes],
    bounds: tuple[int, int],
    *,
    gzipped: bool = False,
    sent: Callable[[int], None] | None = None,
) -> str:
    """Put the bytes of `file` between `bounds`; return the ETag that the storage gave.

    `sent` is called with where in the file it is. Raises PlaceGone, Unavailable, AgentError.
    """
    start, end = bounds
    headers = {"content-type": "application/octet-stream", "content-length": str(end - start)}
    if gzipped:
        headers["content-encoding"] = "gzip"
    try:
        async with (
            asyncio.timeout(60 + (end - start) / SLOWEST_BYTES_PER_S),
            wire.open("PUT", url, headers=headers, content=_pieces(file, bounds, sent)) as stream,
        ):
            _check(stream.status)
            return stream.headers.get("etag", "")
    except TimeoutError as exc:
        raise Unavailable("the upload is slower than 4 KiB/s: it was given up") from exc


async def complete(wire: Wire, url: str, body: bytes) -> None:
    """Tell the storage that all parts are there. Raises PlaceGone, Unavailable, AgentError."""
    headers = {"content-type": "application/xml"}
    answer = await wire.exchange("POST", url, headers=headers, content=body, max_bytes=65536)
    _check(answer.status)


def _check(status: int) -> None:
    if 200 <= status < 300:
        return
    message = f"the storage answered {status} to the upload"
    if status in _EXPIRED:
        raise PlaceGone(message, status=status)
    if status in _AGAIN:
        raise Unavailable(message, status=status)
    if 300 <= status < 400:
        raise BadAnswer(f"the storage redirects the upload ({status})", status=status)
    raise InvalidRequest(message, status=status)


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
