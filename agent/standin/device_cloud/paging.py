"""Parameters of a query: pages (`pageLimit`, `pageNextToken`, `total`), switches, times, lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from starlette.requests import Request

from agent.standin.core.schema import parse_datetime
from agent.standin.device_cloud.refusals import bad_request, invalid

T = TypeVar("T")

DEFAULT_LIMIT = 10
# Every token holds "+", "/" and "=", as real ones do: a client that does not quote it fails here.
TOKEN = r"\+/\+/[0-9]{1,9}="
_TOKEN = re.compile(TOKEN)


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is requested."""

    limit: int
    offset: int
    stated: bool
    """Whether the request names a limit."""
    descending: bool

    def cut(self, found: Iterable[T]) -> tuple[list[T], dict[str, Any]]:
        """Return the items of this page, and `total` and `pageNextToken` for the answer.

        `total` counts the results of the query up to the page limit, or up to ten pages where
        no limit was named. `found` is consumed no further than that.
        """
        if self.descending:
            found = reversed(list(found))
        cap = self.limit if self.stated else 10 * DEFAULT_LIMIT
        head = list(islice(found, max(self.offset + self.limit + 1, cap)))
        items = head[self.offset : self.offset + self.limit]
        rest: dict[str, Any] = {"total": min(len(head), cap)}
        if len(head) > self.offset + self.limit:
            rest["pageNextToken"] = _token(self.offset + self.limit)
        return items, rest


def page(request: Request, *, descending: bool = False) -> Page:
    """Return the page of a request. Raises 422 or 400 on a wrong limit, order or token."""
    query = request.query_params
    limit, sort = query.get("pageLimit"), query.get("pageSort")
    if limit is not None and not (
        limit.isascii() and limit.isdecimal() and 1 <= _int(limit) <= 100
    ):
        raise invalid("pageLimit is a number from 1 to 100")
    if sort not in {None, "asc", "desc"}:
        raise invalid("pageSort is asc or desc")
    token = query.get("pageNextToken")
    return Page(
        limit=DEFAULT_LIMIT if limit is None else int(limit),
        offset=0 if token is None else _offset(token),
        stated=limit is not None,
        descending=descending if sort is None else sort == "desc",
    )


def boolean(request: Request, name: str, *, default: bool) -> bool:
    """Return a switch of the query: true, false, 1 or 0."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if text.lower() in {"true", "1"}:
        return True
    if text.lower() in {"false", "0"}:
        return False
    raise invalid(f"{name} is true or false")


def moment(request: Request, *names: str, default: float) -> float:
    """Return a time of the query, ISO 8601 with an offset or `Z`, as Unix seconds."""
    query = request.query_params
    text = next((query[name] for name in names if name in query), None)
    if text is None:
        return default
    found = parse_datetime(text)
    if found is None:
        raise invalid(f"{text[:40]!r} is no ISO 8601 time with an offset")
    return found


def listed(request: Request, *names: str) -> list[str]:
    """Return a list of the query: its name repeated, or its values joined by commas, or both."""
    values = (value for name in names for value in request.query_params.getlist(name))
    return [part for value in values for part in value.split(",") if part]


def _int(text: str) -> int:
    return int(text) if len(text) < 10 else -1


def _token(offset: int) -> str:
    return f"+/+/{offset}="


def _offset(token: str) -> int:
    if not _TOKEN.fullmatch(token):
        raise bad_request("pageNextToken is not one that was given out")
    return int(token[4:-1])
