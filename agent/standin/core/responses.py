"""Answers: JSON, errors in the format of each half, files and ranges of files."""

import hashlib
import re
from collections.abc import Callable, Mapping

import msgspec
from starlette.responses import Response


class Refused(Exception):
    """A request that is answered with an error; each half has its own subclass and body."""

    def __init__(
        self, status: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})

    def body(self) -> object:
        """Return the JSON value of the answer."""
        return {"message": self.message}

    def response(self) -> Response:
        """Return the answer."""
        return JSON(self.body(), self.status, headers=self.headers)


MakeRefused = Callable[[str, int, str], Refused]
"""Returns the error of the half that a path belongs to, from path, status and message."""


class JSON(Response):
    """A JSON answer, encoded by msgspec."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Encode any plain value."""
        return msgspec.json.encode(content)


_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def file_response(
    content: bytes, request_headers: Mapping[str, str], refuse: Callable[[int, str], Refused]
) -> Response:
    """Return all of `content`, or the one range that is asked for (RFC 9110, 13.1.5 and 14).

    Raises what `refuse` makes of 416 for a range beyond the end. A request for several ranges gets
    the whole, as the RFC allows.
    """
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Accept-Ranges": "bytes"}
    kind = "application/octet-stream"
    wanted = request_headers.get("range")
    match = _RANGE.fullmatch(wanted) if wanted else None
    if match is None or request_headers.get("if-range", etag) != etag:
        if request_headers.get("if-none-match") in {etag, "*"}:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)
    size = len(content)
    span = _span(match[1], match[2], size)
    if span is None:
        refused = refuse(416, "the range is beyond the end")
        refused.headers = {**headers, "Content-Range": f"bytes */{size}"}
        raise refused
    first, last = span
    headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    return Response(content[first : last + 1], 206, headers=headers, media_type=kind)


def _span(first: str, last: str, size: int) -> tuple[int, int] | None:
    """Return the first and the last byte of a range, both included, or None beyond the end."""
    if not first:
        count = int(last or 0)
        return (max(0, size - count), size - 1) if count and size else None
    start, end = int(first), int(last) if last else size - 1
    if start >= size or start > end:
        return None
    return start, min(end, size - 1)
