"""What calls of the device cloud have in common: path segments, If-Match, credentials, pages."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar
from urllib.parse import quote

import msgspec

from agent.call import Call, Response, Scheme
from agent.errors import UsageError
from agent.json_value import JSONValue

USER_OR_DEVICE = (Scheme.API_KEY, Scheme.DEVICE_JWT)
"""The credentials of a call that a device may make as well."""


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Control characters, line breaks, and halves of a pair of UTF-16, which no UTF-8 holds."""


def is_one_line(text: str) -> bool:
    """Return whether a text has no control character: any other may be in an id, or in a name."""
    return not _CONTROL.search(text)


def path_segment(value: str, what: str) -> str:
    """Return an id as one segment of a path, whatever characters it has (clause D2.2).

    Raises UsageError for what cannot be a segment: nothing, dots alone, control characters.
    """
    if not value or value in {".", ".."} or not is_one_line(value):
        raise UsageError(f"{value!r} cannot be {what}")
    return quote(value, safe=":")


def device_path(device_id: str) -> str:
    """Return the path of a device. Raises UsageError."""
    return f"/v1/devices/{path_segment(device_id, 'a device id')}"


NOT_IN_SERVICE = (
    "bring the kit into service first: `cellagent provision run --registration onboard`; "
    "`cellagent device list` shows the devices that the cloud knows"
)
"""What helps where a call in a kit's name meets a cloud that does not know the kit."""


def missing(status: int) -> str:
    """Return where the devices that there are are listed, "" for a refusal other than 404."""
    return "`cellagent device list` shows those that are there" if status == 404 else ""


def if_match(version: str | None) -> dict[str, str]:
    """Return the header that makes a change depend on `version`, exactly as it was received."""
    if version is None:
        return {}
    if not version.isascii() or not version.isprintable() or not version.strip():
        raise UsageError(f"{version!r} cannot be a version")
    return {"if-match": version}


T = TypeVar("T")

LARGEST_PAGE = 100


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_token` is None on the last.

    `total` counts the results of the query, within what the page limit lets the service count:
    it is not the size of the fleet.
    """

    items: tuple[T, ...]
    total: int | None
    next_token: str | None


@dataclass(frozen=True, slots=True)
class ListCall(Call[Page[T]]):
    """Base of the calls for one page of a list: at most `page_limit` items, from a token on."""

    schemes: ClassVar[tuple[Scheme, ...]] = (Scheme.API_KEY,)

    page_limit: int = field(default=LARGEST_PAGE, kw_only=True)
    page_token: str | None = field(default=None, kw_only=True)
    """`next_token` of the page before; None for the first page."""

    def page_query(self) -> list[tuple[str, str]]:
        """Return the parameters that choose the page."""
        token = [] if self.page_token is None else [("pageNextToken", self.page_token)]
        return [("pageLimit", str(self.page_limit)), *token]


class _Page(msgspec.Struct, rename="camel"):
    items: list[JSONValue]
    total: int | None = None
    page_next_token: str | None = None


def read_page(response: Response, read_item: Callable[[JSONValue], T]) -> Page[T]:
    """Return the page in a response, each item as `read_item` reads it. Raises BadAnswer."""
    body = response.decode(_Page)
    items = tuple(read_item(item) for item in body.items)
    return Page(items, body.total, body.page_next_token or None)
