"""Large files in parts, so that after a break only what is missing is sent again (O5.3). Pure.

The service gives a place for each part, and one that is told when all are there. It does so for
updates (OTA payloads), with a user's or an organization's credential.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from xml.sax.saxutils import escape

import msgspec

from agent.call import Call, Host, Request, Response, Scheme
from agent.errors import BadAnswer
from agent.observability.uploads import FileKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.observability.uploads import Project

IN_PARTS_FROM = 8 * 1024 * 1024
"""Bytes of a file that is sent in parts; a smaller one is sooner sent again."""


class _Parts(msgspec.Struct):
    part_urls: list[str]
    complete_upload_url: str
    token: str


class _Prepared(msgspec.Struct):
    data: _Parts


@dataclass(frozen=True, slots=True)
class PreparedParts:
    """Where the parts go, what is told when they are there, and what commits the file."""

    part_urls: tuple[str, ...] = field(repr=False)
    """Signed, as `complete_url` is: whoever has one may put bytes there."""
    complete_url: str = field(repr=False)
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PrepareParts(Call[PreparedParts]):
    """Ask for places for the parts of a file of `size` bytes: POST .../upload_multipart."""

    host: ClassVar[Host] = Host.FILES
    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.ORGANIZATION_TOKEN, Scheme.BASIC)

    kind: FileKind
    size: int
    project: Project

    def request(self) -> Request:
        """Return the announcement."""
        body = {"kind": self.kind.wire_name, "size": self.size}
        return Request("POST", f"{self.project.path}/upload_multipart", json=body)

    def parse(self, response: Response) -> PreparedParts:
        """Return the places. Raises BadAnswer, also when there is none."""
        data = response.decode(_Prepared).data
        if not data.part_urls:
            raise BadAnswer("the answer names no part to upload", status=response.status)
        return PreparedParts(tuple(data.part_urls), data.complete_upload_url, data.token)


def part_bounds(size: int, count: int) -> list[tuple[int, int]]:
    """Return where each of `count` parts begins and ends: all alike, the rest in the last."""
    each = size // count
    starts = [number * each for number in range(count)]
    return list(zip(starts, [*starts[1:], size], strict=True))


def completion(tags: Sequence[str]) -> bytes:
    """Return what tells the storage that the parts are there; `tags` are the ETags it gave."""
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag></Part>"
        for number, tag in enumerate(tags, start=1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
