"""Pages of lists: `pageLimit`, `pageNextToken`, `pageSort`, `total`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from agent.standin.core.operation import Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.serving import Query

T = TypeVar("T")

DEFAULT_LIMIT = 10
# Every token holds "+", "/" and "=", as real ones do: a client that does not quote it fails here.
_TOKEN = r"\+/\+/[0-9]{1,9}="
TOKEN_NAME = "pageNextToken"


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is requested."""

    limit: int
    offset: int
    stated: bool
    """Whether the request names a limit."""
    descending: bool

    def cut(self, found: Iterable[T]) -> tuple[list[T], dict[str, object]]:
        """Return the items of this page, and `total` and `pageNextToken` for the answer.

        `total` counts the results of the query up to the page limit, or up to ten pages where
        no limit was named. `found` is consumed no further than that.
        """
        if self.descending:
            found = reversed(list(found))
        cap = self.limit if self.stated else 10 * DEFAULT_LIMIT
        head = list(islice(found, max(self.offset + self.limit + 1, cap)))
        items = head[self.offset : self.offset + self.limit]
        rest: dict[str, object] = {"total": min(len(head), cap)}
        if len(head) > self.offset + self.limit:
            rest[TOKEN_NAME] = _token(self.offset + self.limit)
        return items, rest

    def answer(
        self, found: Iterable[T], to_resource: Callable[[T], object] = lambda item: item
    ) -> JSON:
        """Return the answer of a list: the resources of the items of this page, and the rest."""
        items, rest = self.cut(found)
        return JSON({"items": [to_resource(item) for item in items], **rest})


PAGES = (
    Parameter(name="pageLimit", schema={"type": "integer", "minimum": 1, "maximum": 100}),
    Parameter(name=TOKEN_NAME, schema={"type": "string", "pattern": f"^{_TOKEN}$"}),
    Parameter(name="pageSort", schema={"type": "string", "enum": ["asc", "desc"]}),
)
"""The parameters of every list."""


def page(query: Query, *, descending: bool) -> Page:
    """Return the page that the parameters of a query name."""
    sort = query.get("pageSort")
    return Page(
        limit=int(query.get("pageLimit", DEFAULT_LIMIT)),
        offset=int(query.get(TOKEN_NAME, _token(0))[4:-1]),
        stated="pageLimit" in query,
        descending=descending if sort is None else sort == "desc",
    )


def _token(offset: int) -> str:
    return f"+/+/{offset}="
