"""The pages of a list of resources, and the walk over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from agent.call import Response
from agent.errors import BadAnswer, UsageError

LARGEST_PAGE = 100


class Paging(msgspec.Struct, frozen=True):
    """The position of a page; `total_count` items are on the server, `item_count` on this page."""

    item_count: int
    total_count: int
    page: int
    page_count: int
    per_page: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """One page: its items as received, and its position."""

    data: list[Any]
    paging: Paging


class _Body(msgspec.Struct):
    data: list[Any]
    paging: Paging


def read_envelope(response: Response) -> Envelope:
    """Return the page in a response. Raises BadAnswer."""
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

    After each page `progress` is called with how many were yielded and how many there are.
    """
    page, done = 1, 0
    while True:
        answer = await fetch(page)
        if answer.paging.page != page:
            raise BadAnswer(f"asked for page {page}, got page {answer.paging.page}")
        for item in answer.data:
            yield item
        done += len(answer.data)
        if progress is not None:
            progress(done, answer.paging.total_count)
        # An empty page ends the walk whatever the count says: the list may have shrunk meanwhile.
        if not answer.data or page >= answer.paging.page_count:
            return
        page += 1
