"""Multipart bodies, read as leniently as the clients in the field need. Pure.

The length of a part is that between its boundaries: one client writes `Content-Length` and the next
header on one line. `Content-Type` and `Content-Disposition` may be missing.
"""

import itertools
import re
from dataclasses import dataclass
from email.message import Message

_LONGEST_HEAD = 16 * 1024
MOST_PARTS = 10_000


class BadMultipart(ValueError):
    """The body is not a complete multipart body."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its header text and its bytes."""

    head: str
    content: bytes

    @property
    def is_file(self) -> bool:
        """Whether the header names a file."""
        return re.search(r"filename\*?=", self.head, re.IGNORECASE) is not None


def boundary_of(content_type: str) -> bytes:
    """Return the boundary of a Content-Type, quoted or not. Raises BadMultipart."""
    message = Message()
    message["content-type"] = content_type.replace("\r", " ").replace("\n", " ")
    boundary = message.get_param("boundary")
    if not isinstance(boundary, str) or not 0 < len(boundary) <= 200 or not boundary.isascii():
        raise BadMultipart("the Content-Type names no boundary")
    return boundary.encode()


def split_parts(body: bytes, boundary: bytes) -> list[Part]:
    """Return the parts in order. Raises BadMultipart."""
    mark = re.compile(rb"(?:\A|\r\n|\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\r\n|\n|\Z)")
    boundaries = list(itertools.islice(mark.finditer(body), MOST_PARTS + 2))
    if not boundaries:
        raise BadMultipart("the boundary does not occur in the body")
    if len(boundaries) > MOST_PARTS + 1:
        raise BadMultipart(f"more than {MOST_PARTS} parts")
    parts: list[Part] = []
    for current, following in itertools.pairwise(boundaries):
        if current.group(1):
            return parts
        parts.append(_part(body[current.end() : following.start()]))
    if not boundaries[-1].group(1):
        raise BadMultipart("the last boundary is missing: the body was cut")
    return parts


def _part(raw: bytes) -> Part:
    # `raw` begins with the line end of its boundary: a part without a head has an empty line next.
    empty_line = re.search(rb"\r\n\r\n|\n\n", raw[:_LONGEST_HEAD])
    if empty_line is None:
        raise BadMultipart("a part has no empty line between head and content")
    return Part(raw[: empty_line.start()].decode("latin-1").strip(), raw[empty_line.end() :])
