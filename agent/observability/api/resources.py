"""The calls that read and change resources (clause O3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from agent.call import Call, Host, Request, Response, Scheme, StatusCall
from agent.errors import BadAnswer, UsageError
from agent.json_value import JSONValue
from agent.observability.api import paging
from agent.observability.api.kinds import ResourceKind, Scope, path, related
from agent.observability.api.resource_names import check_names


def read_time(text: object) -> datetime:
    """Return a time of an answer: ISO 8601 with its offset. Raises BadAnswer for a naive one."""
    try:
        when = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise BadAnswer(f"{text!r} is no time with an offset")
    return when


T = TypeVar("T")

# The organization token first: it is made for machines (clause O4.2).
USER = (Scheme.ORGANIZATION_TOKEN, Scheme.BASIC)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource: its fields as received; `time` reads one as a time."""

    raw: Mapping[str, JSONValue]

    @classmethod
    def of(cls, raw: JSONValue) -> Resource:
        """Return the resource of an item of a list, whatever it is."""
        return cls(raw if isinstance(raw, dict) else {"value": raw})

    def __getitem__(self, name: str) -> JSONValue:
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

    @property
    def title(self) -> str:
        """What it does, with the kind: "list issues"."""
        general = super(ResourceCall, self).title
        return general.replace("resources", self.kind.plural).replace("resource", self.kind.name)

    def advice(self, status: int, code: int | None) -> str:  # noqa: ARG002 - the base's
        """Return which route does not exist, and where what exists is listed."""
        if status == 404:
            there = f"`cellagent observe {self.kind.name} list` shows those that are there; "
            scope = (
                "`cellagent observe whoami` lists your organizations, `cellagent observe project "
                "list` the projects of one"
            )
            return there + scope if hasattr(self, "key") else scope
        if status == 405:
            return f"the service has no such route for {self.kind.plural}"
        return ""


@dataclass(frozen=True, slots=True)
class ListResources(ResourceCall[paging.Envelope]):
    """One page of a kind. A filter may be a text, a number, a time, or several of them."""

    filters: Mapping[str, object] = field(default_factory=dict)
    sort: str = ""
    page: int = 1
    per_page: int = paging.LARGEST_PAGE

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        query = [*paging.page_query(self.page, self.per_page), *paging.filter_query(self.filters)]
        if self.sort:
            query.append(("sort", self.sort))
        return Request("GET", path(self.kind, self.scope), query)

    def parse(self, response: Response) -> paging.Envelope:
        """Return the page. Raises BadAnswer."""
        return response.decode(paging.Envelope)


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
class ResourceChange(ResourceCall[Resource | None]):
    """Base of the changes; the result is the resource as it is then, if the service returns it."""

    def parse(self, response: Response) -> Resource | None:
        """Return the resource, None for an empty answer. Raises BadAnswer."""
        return _resource(response) if response.content.strip() else None


@dataclass(frozen=True, slots=True)
class CreateResource(ResourceChange):
    """Create a resource."""

    repeatable = False

    fields: Mapping[str, object]

    def request(self) -> Request:
        """Return what to send. Raises UsageError: a wrong name, a kind not created in this way."""
        if self.kind.not_created:
            raise UsageError(f"no {self.kind.name} is created here", hint=self.kind.not_created)
        check_names(self.fields)
        return Request("POST", path(self.kind, self.scope), json=dict(self.fields))


@dataclass(frozen=True, slots=True)
class UpdateResource(ResourceChange):
    """Change any number of fields; the others stay."""

    key: str
    fields: Mapping[str, object]

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        check_names(self.fields)
        return Request("PATCH", path(self.kind, self.scope, self.key), json=dict(self.fields))


@dataclass(frozen=True, slots=True)
class PutRelation(ResourceChange):
    """Create or update the relationship of a resource to another one.

    The path is that of the first (`cohorts/beta`), then the other's (`devices/SERIAL`).
    """

    key: str
    other: ResourceKind
    other_key: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        check_names(self.fields)
        own = path(self.kind, self.scope, self.key)
        return Request("PUT", own + related(self.other, self.other_key), json=dict(self.fields))


@dataclass(frozen=True, slots=True)
class DeleteResource(ResourceCall[None], StatusCall):
    """Delete one resource."""

    repeatable = False

    key: str

    def request(self) -> Request:
        """Return what to send. Raises UsageError."""
        return Request("DELETE", path(self.kind, self.scope, self.key))


@dataclass(frozen=True, slots=True)
class DeleteResources(ResourceCall[None], StatusCall):
    """Delete many: their ids go as a JSON array in the body."""

    repeatable = False

    ids: Sequence[str | int]

    def request(self) -> Request:
        """Return what to send. Raises UsageError for none: an empty list may mean all."""
        if not self.ids:
            raise UsageError("no ids are given")
        return Request("DELETE", path(self.kind, self.scope), json=list(self.ids))


def _resource(response: Response) -> Resource:
    """Return the resource in an answer, in `data` or bare. Raises BadAnswer."""
    body = response.decode(dict[str, JSONValue])
    inner = body.get("data", body)
    if not isinstance(inner, dict):
        raise BadAnswer("the answer is no resource")
    return Resource(inner)
