"""Walks a list page by page, holding one page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from agent.errors import BadAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent.cloud.devices import Page

T = TypeVar("T")

MOST_EMPTY_PAGES = 20
"""Pages without items, one after another, after which the service is not believed any more."""


async def walk(fetch: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    """Yield every item; `fetch` gets the page that a token names, None for the first.

    Raises BadAnswer where the pages lead nowhere: the same token again, or only empty ones.
    """
    token: str | None = None
    empty = 0
    while True:
        page = await fetch(token)
        for item in page.items:
            yield item
        if page.next_token is None:
            return
        empty = 0 if page.items else empty + 1
        if page.next_token == token or empty >= MOST_EMPTY_PAGES:
            raise BadAnswer("the list does not end: its pages lead nowhere")
        token = page.next_token
