"""A page of a list of the device cloud. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agent.call import Response
from agent.errors import BadAnswer

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


def read_page(response: Response, read_item: Callable[[Any], T]) -> Page[T]:
    """Return the page in a response, each item as `read_item` reads it. Raises BadAnswer."""
    body = response.json()
    if not isinstance(body, dict) or not isinstance(body.get("items"), list):
        raise BadAnswer("the list has no `items`")
    total, token = body.get("total"), body.get("pageNextToken")
    if total is not None and (not isinstance(total, int) or isinstance(total, bool)):
        raise BadAnswer("the list's `total` is no number")
    if token is not None and not isinstance(token, str):
        raise BadAnswer("the list's `pageNextToken` is no text")
    return Page(tuple(read_item(item) for item in body["items"]), total, token or None)
