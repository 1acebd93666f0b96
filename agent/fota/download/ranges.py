"""Resuming a download: the headers of a request, and what the answer to it allows. Pure.

RFC 9110 clauses 13.1.5 (If-Range) and 14 (Range). A strong ETag makes the server itself refuse to
mix two files. Without one, the last bytes at hand are requested again and compared.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from agent.call import content_length, content_range
from agent.errors import AgentError, Unavailable
from agent.retry import check_available

OVERLAP_BYTES = 4096
"""Bytes requested twice where no strong ETag ties the parts together."""

_UNSATISFIED = re.compile(r"(?i:bytes) \*/(\d{1,19})", re.ASCII)


class DownloadError(AgentError):
    """Base of the errors that end a download; the message says what the server did."""

    kind = "download"


class WrongLength(DownloadError):
    """The server's file is not as long as the job says."""

    kind = "download-length"


class EndlessData(WrongLength):
    """More bytes came than were declared; reading stopped one byte behind them."""

    kind = "download-endless"


class ImageMissing(DownloadError):
    """The server says that it has no such file, or not for us."""

    kind = "download-missing"


class BadAnswerToRange(DownloadError):
    """The server kept answering a range request with something else."""

    kind = "download-range"


class DownloadInterrupted(Unavailable):
    """The connection broke or the server asked for a later try; what arrived is kept."""

    kind = "download-interrupted"


@dataclass(frozen=True, slots=True)
class PartialFile:
    """The part of a file that is on the disk. `etag` is as the server wrote it, "" for none."""

    bytes: int = 0
    etag: str = ""

    @property
    def strong(self) -> bool:
        """Whether the ETag promises the same bytes, and can be sent back as it came."""
        if not self.etag.isascii() or not self.etag.isprintable():
            return False  # in which encoding it came is not known
        return len(self.etag) >= 2 and self.etag.startswith('"') and self.etag.endswith('"')

    @property
    def rest_from(self) -> int:
        """The byte from which the rest is requested."""
        return self.bytes if self.strong else max(self.bytes - OVERLAP_BYTES, 0)


@dataclass(frozen=True, slots=True)
class RangeBody:
    """The body of an answer: bytes `start` to `end` of the file.

    `start` may lie within what is on the disk: these bytes are compared.
    """

    start: int
    end: int | None
    """One behind the last byte, None where the server does not say."""
    total: int | None
    etag: str
    start_over: str = ""
    """Why what is on the disk is worthless, "" where the body continues it."""


def range_headers(held: PartialFile) -> dict[str, str]:
    """Return the headers of the next request. Not compressed: the declared size is the file's."""
    headers = {"accept-encoding": "identity"}
    if held.bytes:
        headers["range"] = f"bytes={held.rest_from}-"
        if held.strong:
            headers["if-range"] = held.etag
    return headers


def read_range_answer(
    status: int, headers: Mapping[str, str], held: PartialFile, declared: int | None, now: datetime
) -> RangeBody:
    """Return which bytes the body holds. Raises DownloadError, DownloadInterrupted (try later).

    `declared` is the file's size, None where only an upper bound is known; `headers` have names
    in lower case, or look them up without regard to it.
    """
    answered = f"the download host answered {status}"
    check_available(answered, status, headers, now, DownloadInterrupted)
    if status == 416:
        return _after_416(headers, held, declared)
    if status == 400 and held.bytes:
        # Of a host that takes a request for a part, or its If-Range, for a wrong one.
        return RangeBody(0, 0, None, "", start_over=f"{answered} to a request for its rest")
    if status not in {200, 206}:
        raise ImageMissing(f"{answered} instead of the image")
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"", "identity"}:
        raise BadAnswerToRange(f"the image came {coding[:20]}-encoded, which was not asked for")
    body = _partial(headers, held) if status == 206 else _whole(headers, held)
    _check_total(body.total, declared)
    return body


def _whole(headers: Mapping[str, str], held: PartialFile) -> RangeBody:
    etag = headers.get("etag", "")
    total = content_length(headers)
    reason = ""
    if held.bytes:
        changed = bool(held.etag) and etag != held.etag
        reason = "the file changed at the host" if changed else "the host sends no ranges"
    return RangeBody(start=0, end=total, total=total, etag=etag, start_over=reason)


def _partial(headers: Mapping[str, str], held: PartialFile) -> RangeBody:
    if not held.bytes:
        raise BadAnswerToRange("the download host sent a part, though the whole was asked for")
    text = headers.get("content-range", "")
    if (part := content_range(headers)) is None:
        raise BadAnswerToRange(f"the download host's Content-Range is {text[:60]!r}")
    start, last, total = part
    if start != held.rest_from or last < start or (total is not None and last >= total):
        raise BadAnswerToRange(
            f"asked for bytes {held.rest_from}-, the download host sent {text[:60]!r}"
        )
    length = content_length(headers)
    if length is not None and length != last - start + 1:
        raise BadAnswerToRange(f"the part {text[:60]!r} is said to have {length} bytes")
    etag = headers.get("etag", "")
    if held.etag and etag and etag != held.etag:
        # If-Range was not honoured, or there was only a weak tag to go by.
        return RangeBody(start, last + 1, total, etag, start_over="the file changed at the host")
    return RangeBody(start, last + 1, total, etag)


def _after_416(headers: Mapping[str, str], held: PartialFile, declared: int | None) -> RangeBody:
    match = _UNSATISFIED.fullmatch(headers.get("content-range", "").strip())
    _check_total(int(match[1]) if match else None, declared)
    if not held.bytes:
        raise BadAnswerToRange("the download host refused a range that was not asked for")
    return RangeBody(0, 0, None, "", start_over="the download host has no such range")


def _check_total(total: int | None, declared: int | None) -> None:
    if total is not None and declared is not None and total != declared:
        raise WrongLength(
            f"the file at the download host has {total} bytes, the job says {declared}"
        )
