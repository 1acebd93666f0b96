"""A large file in parts: the call for their URLs, their bounds, and what completes them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from xml.sax.saxutils import escape

import msgspec

from agent.call import Call, Host, Request, Response, Scheme
from agent.errors import BadAnswer
from agent.observability.api.resources import USER
from agent.observability.ingest.uploads import FileKind, UploadProject

IN_PARTS_FROM = 8 * 1024 * 1024
"""Bytes from which a file is sent in parts; a smaller one is sent again as a whole."""


class _Parts(msgspec.Struct):
    part_urls: list[str]
    complete_upload_url: str
    token: str


class _PreparedParts(msgspec.Struct):
    data: _Parts


@dataclass(frozen=True, slots=True)
class PreparedParts:
    """The URLs for the parts, the URL that completes them, and the token of the commit."""

    part_urls: tuple[str, ...] = field(repr=False)
    """Signed, as `complete_url` is: anyone who has one may put bytes there."""
    complete_url: str = field(repr=False)
    token: str = field(repr=False)


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
            raise BadAnswer("the answer names no part to upload", status=response.status)
        return PreparedParts(tuple(data.part_urls), data.complete_upload_url, data.token)


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
