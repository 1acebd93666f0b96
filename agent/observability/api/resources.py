"""The calls that read and change resources, and their pages, filters and times (clause O3.1)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from agent.call import Call, Host, Request, Response, Scheme
from agent.errors import BadAnswer, UsageError
from agent.observability.api.kinds import ResourceKind, Scope, path, related

_PARAMETER = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
# The filters of the reference that are times, by how their names end.
_TIME_NAME = re.compile(r"(^|_)(date|since|until|seen|before|after)$")


def time_parameter(when: datetime) -> str:
    """Return an aware time as a query parameter: UTC, whole seconds, `Z`. Raises UsageError."""
    if when.tzinfo is None:
        raise UsageError("a time without a time zone cannot be sent")
    # Not strftime: it does not pad years below 1000.
    return when.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def is_time_name(name: str) -> bool:
    """Return whether a filter of this name is a time."""
    return _TIME_NAME.search(name) is not None


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


def read_time(text: object) -> datetime:
    """Return a time of an answer: ISO 8601 with its offset. Raises BadAnswer for a naive one."""
    try:
        when = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise BadAnswer(f"{text!r} is no time with an offset")
    return when


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


def envelope(response: Response) -> Envelope:
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


T = TypeVar("T")

# The organization token first: it is made for machines (clause O4.2).
USER = (Scheme.ORGANIZATION_TOKEN, Scheme.BASIC)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: its fields as received; `time` reads one as a time."""

    raw: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.raw[name]

    def time(self, name: str) -> datetime:
        """Return the time in a field, with its offset. Raises BadAnswer."""
        return read_time(self.raw.get(name))


@dataclass(frozen=True, slots=True)
class ResourceCall(Call[T], Generic[T]):
    """Base of the calls on a kind of resource."""

    host = Host.API
    schemes: ClassVar[tuple[Scheme, ...]] = USER

    kind: ResourceKind
    scope: Scope

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Return which route does not exist."""
        if status == 405:
            return f"the service has no such route for {self.kind.plural}"
        return ""


@dataclass(frozen=True, slots=True)
class ListResources(ResourceCall[Envelope]):
    """One page of a kind. A filter may be a text, a number, a time, or several of them."""

    filters: Mapping[str, Any] = field(default_factory=dict)
    sort: str = ""
    page: int = 1
    per_page: int = LARGEST_PAGE

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        query = [*page_query(self.page, self.per_page), *filter_query(self.filters)]
        if self.sort:
            query.append(("sort", self.sort))
        return Request("GET", path(self.kind, self.scope), query)

    def parse(self, response: Response) -> Envelope:
        """Return the page. Raises BadAnswer."""
        return envelope(response)


@dataclass(frozen=True, slots=True)
class FetchResource(ResourceCall[Resource]):
    """One resource by its key."""

    key: str

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        return Request("GET", path(self.kind, self.scope, self.key))

    def parse(self, response: Response) -> Resource:
        """Return the resource. Raises BadAnswer."""
        return _resource(response)


@dataclass(frozen=True, slots=True)
class CreateResource(ResourceCall[Resource | None]):
    """Create a resource; the result is the resource if the service returns it."""

    repeatable = False

    fields: Mapping[str, Any]

    def request(self) -> Request:
        """Return what to send. Raises UsageError for a kind that is created in another way."""
        if self.kind.not_created:
            raise UsageError(f"no {self.kind.name} is created here", hint=self.kind.not_created)
        return Request("POST", path(self.kind, self.scope), json=dict(self.fields))

    def parse(self, response: Response) -> Resource | None:
        """Return the resource, None for an empty answer. Raises BadAnswer."""
        return _resource(response) if response.content.strip() else None


@dataclass(frozen=True, slots=True)
class UpdateResource(ResourceCall[Resource | None]):
    """Change any number of fields; the others stay."""

    key: str
    fields: Mapping[str, Any]

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        return Request("PATCH", path(self.kind, self.scope, self.key), json=dict(self.fields))

    def parse(self, response: Response) -> Resource | None:
        """Return the resource, None for an empty answer. Raises BadAnswer."""
        return _resource(response) if response.content.strip() else None


@dataclass(frozen=True, slots=True)
class PutRelation(ResourceCall[Resource | None]):
    """Create or update the relationship of a resource to another one.

    The path is that of the first (`cohorts/beta`), then the other's (`devices/SERIAL`).
    """

    key: str
    other: ResourceKind
    other_key: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        own = path(self.kind, self.scope, self.key)
        return Request("PUT", own + related(self.other, self.other_key), json=dict(self.fields))

    def parse(self, response: Response) -> Resource | None:
        """Return the object, None for an empty answer. Raises BadAnswer."""
        return _resource(response) if response.content.strip() else None


@dataclass(frozen=True, slots=True)
class DeleteResource(ResourceCall[None]):
    """Delete one resource."""

    repeatable = False

    key: str

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        return Request("DELETE", path(self.kind, self.scope, self.key))

    def parse(self, response: Response) -> None:
        """Return nothing: the response has no body that matters."""


@dataclass(frozen=True, slots=True)
class DeleteResources(ResourceCall[None]):
    """Delete many: their ids go as a JSON array in the body."""

    repeatable = False

    ids: Sequence[str | int]

    def request(self) -> Request:
        """Return what to send. Raises UsageError for none: an empty list may mean all."""
        if not self.ids:
            raise UsageError("no ids are given")
        return Request("DELETE", path(self.kind, self.scope), json=list(self.ids))

    def parse(self, response: Response) -> None:
        """Return nothing: the response has no body that matters."""


def filter_query(filters: Mapping[str, Any]) -> list[tuple[str, str]]:
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


def _parameter(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return time_parameter(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise UsageError(f"{name}: {value!r} cannot be a filter")
    return checked_time(value, name) if is_time_name(name) else value


def _resource(response: Response) -> Resource:
    """Return the resource in an answer, in `data` or bare. Raises BadAnswer."""
    body = response.json()
    inner = body.get("data", body) if isinstance(body, dict) else body
    if not isinstance(inner, dict):
        raise BadAnswer("the answer is no resource")
    return Resource(inner)
