"""Lists of resources: pagination, envelope, filters, sorting (clause O2)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, TypeVar

from agent.standin.core.operation import Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.schema import NUMBER, Schema, object_schema
from agent.standin.core.serving import Query

R = TypeVar("R")
SortKey = str | float | None
PER_PAGE = 20
MAX_PER_PAGE = 100
_MAX_PAGE = 2**31 - 1

PAGING = object_schema(
    item_count={**NUMBER, "description": "Items in this response."},
    total_count={**NUMBER, "description": "Items on the server."},
    page=NUMBER,
    page_count=NUMBER,
    per_page={**NUMBER, "description": "Most items of a response."},
)
PAGE_PARAMETERS = (
    Parameter(
        name="page",
        schema={"type": "integer", "minimum": 1, "maximum": _MAX_PAGE, "default": 1},
        description="The page, counted from 1.",
    ),
    Parameter(
        name="per_page",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_PER_PAGE, "default": PER_PAGE},
        description="Most items of a response.",
    ),
)


@dataclass(frozen=True, slots=True)
class FieldFilter(Generic[R]):
    """A filter of a list: by values, by an earliest time, or by a latest time."""

    read: Callable[[R], object]
    kind: str = "any"
    """"any": one of the repeated values; "since" and "until": a timestamp parameter."""

    def admits(self, record: R, given: list[str] | float) -> bool:
        """Return whether a record passes the filter."""
        value = self.read(record)
        if isinstance(given, list):
            return str(value) in given
        if not isinstance(value, int | float):
            return False
        return value >= given if self.kind == "since" else value <= given


_FILTER_WORDS = {
    "any": "May be repeated.",
    "since": "At or after this instant.",
    "until": "At or before this instant.",
}


def readers(*names: str, **fields: str) -> dict[str, Callable[[Any], Any]]:
    """Return what reads fields: under their own names, or the public names given."""
    pairs = {name: name for name in names} | fields
    return {name: attrgetter(of) for name, of in pairs.items()}


def filters(kind: str, *names: str, **fields: str) -> dict[str, FieldFilter[Any]]:
    """Return filters of a kind by fields: under their own names, or the public names given."""
    return {name: FieldFilter(read, kind) for name, read in readers(*names, **fields).items()}


MADE = {"created_date": "created", "first_seen": "created"}
"""The times that most lists filter by: what has no `first_seen` was seen as it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[R]):
    """What a list can be filtered by, and sorted by."""

    filters: Mapping[str, FieldFilter[R]] = field(default_factory=dict)
    sorts: Mapping[str, Callable[[R], SortKey]] = field(default_factory=dict)

    @property
    def list_parameters(self) -> tuple[Parameter, ...]:
        """The query parameters of the list."""
        parameters = list(PAGE_PARAMETERS)
        for name, filter_ in self.filters.items():
            schema: Schema = {"type": "array", "items": {"type": "string"}}
            if filter_.kind != "any":
                schema = {"type": "string", "format": "date-time", "pattern": "Z$"}
            text = _FILTER_WORDS[filter_.kind]
            parameters.append(Parameter(name=name, schema=schema, description=text))
        if self.sorts:
            names = [*self.sorts, *(f"-{name}" for name in self.sorts)]
            schema = {"type": "array", "items": {"type": "string", "enum": names}}
            text = "A leading - sorts descending. May be repeated, the first counts most."
            parameters.append(Parameter(name="sort", schema=schema, description=text))
        return tuple(parameters)

    def select(self, records: Iterable[R], query: Query) -> list[R]:
        """Return the filtered and sorted records, all pages of them."""
        given = [(filter_, query[name]) for name, filter_ in self.filters.items() if name in query]
        selected = [
            record
            for record in records
            if all(filter_.admits(record, value) for filter_, value in given)
        ]
        for name in reversed(query.get("sort", [])):
            descending = name.startswith("-")
            selected = sort(selected, self.sorts[name.removeprefix("-")], descending=descending)
        return selected

    def list_response(
        self, records: Iterable[R], query: Query, render: Callable[[R], object]
    ) -> JSON:
        """Return the page of the list that a query asks for, in the envelope."""
        selected = self.select(records, query)
        page, per_page = query["page"], query["per_page"]
        first = (page - 1) * per_page
        items = [render(record) for record in selected[first : first + per_page]]
        return JSON(
            {
                "data": items,
                "paging": {
                    "item_count": len(items),
                    "total_count": len(selected),
                    "page": page,
                    "page_count": -(-len(selected) // per_page),
                    "per_page": per_page,
                },
            }
        )


def sort(records: list[R], read: Callable[[R], SortKey], *, descending: bool) -> list[R]:
    """Return records by a key; an unknown one sorts first."""

    def key(record: R) -> tuple[bool, str | float]:
        value = read(record)
        return (value is not None, 0 if value is None else value)

    return sorted(records, key=key, reverse=descending)


def page_schema(item: Schema) -> Schema:
    """Return the schema of a page."""
    return object_schema(data={"type": "array", "items": item}, paging=PAGING)


def item_schema(item: Schema) -> Schema:
    """Return the schema of a response with one item."""
    return object_schema(data=item)
