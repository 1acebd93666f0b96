"""Bodies in parts, read as leniently as the clients in the field need. Pure.

A part's length is taken from the boundary alone: one client writes `Content-Length` and the next
header on one line. `Content-Type` and `Content-Disposition` may be missing.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from email.message import Message

_LONGEST_HEAD = 16 * 1024
MOST_PARTS = 10_000


class BadMultipart(ValueError):
    """The body is not in parts, or is cut short."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part: what its head said, and its bytes."""

    head: str
    content: bytes

    @property
    def is_file(self) -> bool:
        """Say whether the head names a file."""
        return re.search(r"filename\*?=", self.head, re.IGNORECASE) is not None


def boundary_of(content_type: str) -> bytes:
    """Return the boundary of a Content-Type, quoted or not. Raises BadMultipart."""
    message = Message()
    message["content-type"] = content_type.replace("\r", " ").replace("\n", " ")
    found = message.get_param("boundary")
    if not isinstance(found, str) or not 0 < len(found) <= 200 or not found.isascii():
        raise BadMultipart("the Content-Type names no boundary")
    return found.encode()


def split_parts(body: bytes, boundary: bytes) -> list[Part]:
    """Return the parts in their order. Raises BadMultipart."""
    mark = re.compile(rb"(?:\A|\r\n|\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\r\n|\n|\Z)")
    places = list(itertools.islice(mark.finditer(body), MOST_PARTS + 2))
    if not places:
        raise BadMultipart("the boundary does not occur in the body")
    if len(places) > MOST_PARTS + 1:
        raise BadMultipart(f"more than {MOST_PARTS} parts")
    parts: list[Part] = []
    for place, following in itertools.pairwise(places):
        if place.group(1):
            return parts
        parts.append(_part(body[place.end() : following.start()]))
    if not places[-1].group(1):
        raise BadMultipart("the last boundary is missing: the body was cut")
    return parts


def _part(raw: bytes) -> Part:
    # `raw` begins with the line end of its boundary: a part without a head has an empty line next.
    found = re.search(rb"\r\n\r\n|\n\n", raw[:_LONGEST_HEAD])
    if found is None:
        raise BadMultipart("a part has no empty line between head and content")
    return Part(raw[: found.start()].decode("latin-1").strip(), raw[found.end() :])
