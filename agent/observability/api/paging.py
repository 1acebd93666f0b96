"""The envelope of several items, and the walk through all its pages (clauses O2.1, O2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from agent.errors import BadAnswer, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent.call import Response

LARGEST_PAGE = 100


class Paging(msgspec.Struct, frozen=True):
    """Where a page stands; `total_count` is on the server, `item_count` here."""

    item_count: int
    total_count: int
    page: int
    page_count: int
    per_page: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """One page: its items as they came, and where it stands."""

    data: list[Any]
    paging: Paging


class _Body(msgspec.Struct):
    data: list[Any]
    paging: Paging


def envelope(response: Response) -> Envelope:
    """Return the page that an answer holds. Raises BadAnswer."""
    body = response.decode(_Body)
    return Envelope(body.data, body.paging)


def page_query(page: int, per_page: int) -> list[tuple[str, str]]:
    """Return the parameters of a page. Raises UsageError for what the service refuses."""
    if page < 1:
        raise UsageError(f"page {page}: the first is 1")
    if not 1 <= per_page <= LARGEST_PAGE:
        raise UsageError(f"per_page {per_page}: it is 1 to {LARGEST_PAGE}")
    return [("page", str(page)), ("per_page", str(per_page))]


async def walk(
    fetch: Callable[[int], Awaitable[Envelope]],
    progress: Callable[[int, int], None] | None = None,
) -> AsyncIterator[Any]:
    """Yield every item of every page, holding one page; `fetch` gets the page's number.

    `progress` is told how many have been yielded and how many there are, after each page.
    """
    page, done = 1, 0
    while True:
        found = await fetch(page)
        if found.paging.page != page:
            raise BadAnswer(f"asked for page {page}, got page {found.paging.page}")
        for item in found.data:
            yield item
        done += len(found.data)
        if progress is not None:
            progress(done, found.paging.total_count)
        # An empty page ends the walk whatever the count says: the list may have shrunk meanwhile.
        if not found.data or page >= found.paging.page_count:
            return
        page += 1
