"""A file, or the range of it that was asked for (RFC 9110, 13.1.5 and 14)."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from starlette.responses import Response

from agent.standin.device_cloud.refusals import DeviceCloudRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def ranged(content: bytes, asked: Mapping[str, str]) -> Response:
    """Return all of `content`, or the one range that was asked for; 416 for one beyond the end.

    Several ranges in one request are not offered: the whole is sent, as the RFC allows.
    """
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Accept-Ranges": "bytes"}
    kind = "application/octet-stream"
    wanted = asked.get("range")
    match = _RANGE.fullmatch(wanted) if wanted else None
    if match is None or asked.get("if-range", etag) != etag:
        if asked.get("if-none-match") in {etag, "*"}:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)
    size = len(content)
    span = _span(match[1], match[2], size)
    if span is None:
        refused = DeviceCloudRefused(416, "the range is beyond the end", code=41600)
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
