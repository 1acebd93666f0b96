"""Lists of resources: the filters of their query, their pages, and the walk over all of them."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime

import msgspec

from agent.errors import BadAnswer, UsageError
from agent.json_value import JSONValue

_PARAMETER = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
# The filters of the reference that are times, by how their names end.
_TIME_NAME = re.compile(r"(^|_)(date|since|until|seen|before|after|at)$")


def time_parameter(when: datetime) -> str:
    """Return an aware time as a parameter: UTC, whole seconds, `Z` (O2.3). Raises UsageError."""
    if when.tzinfo is None:
        raise UsageError("a time without a time zone cannot be sent")
    # Not strftime: it does not pad years below 1000.
    return when.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def checked_time(text: str, name: str) -> str:
    """Return a time parameter given as text. Raises UsageError where the service would refuse."""
    try:
        if _PARAMETER.fullmatch(text):
            datetime.fromisoformat(text)
            return text
    except ValueError:
        pass
    raise UsageError(
        f"{name}: {text!r} is not a valid time", hint="write it in UTC, as 2026-01-31T23:59:59Z"
    )


def filter_query(filters: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return filters as parameters; a name is repeated for each of several values (O2.4).

    Raises UsageError for a time that the service would refuse, and for an unusable value.
    """
    query: list[tuple[str, str]] = []
    for shown, values in filters.items():
        # The reference writes a list-valued parameter with `[]`, which is not sent.
        name = shown.removesuffix("[]")
        several = values if isinstance(values, list | tuple | set | frozenset) else [values]
        query += [(name, _parameter(name, value)) for value in several]
    return query


def _parameter(name: str, value: object) -> str:
    if isinstance(value, datetime):
        return time_parameter(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise UsageError(f"{name}: {value!r} cannot be a filter")
    return checked_time(value, name) if _TIME_NAME.search(name) else value


LARGEST_PAGE = 100


class Paging(msgspec.Struct, frozen=True):
    """The position of a page; `total_count` items are on the server, `item_count` on this page."""

    item_count: int
    total_count: int
    page: int
    page_count: int
    per_page: int


class Envelope(msgspec.Struct, frozen=True):
    """One page: its items as received, and its position."""

    data: list[JSONValue]
    paging: Paging


def page_query(page: int, per_page: int) -> list[tuple[str, str]]:
    """Return the parameters of a page. Raises UsageError for what the service refuses."""
    if page < 1:
        raise UsageError(f"page {page}: the first is 1")
    if not 1 <= per_page <= LARGEST_PAGE:
        raise UsageError(f"per_page {per_page}: it is 1 to {LARGEST_PAGE}")
    return [("page", str(page)), ("per_page", str(per_page))]


async def walk(
    fetch: Callable[[int], Awaitable[Envelope]], progress: Callable[[int, int], None] | None = None
) -> AsyncIterator[JSONValue]:
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
