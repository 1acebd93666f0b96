"""Operations as they are declared, and the hosts that serve them.

The document is made of these declarations; handlers check requests by the same schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from agent.standin.core.schema import Schema


class Host(StrEnum):
    """The hosts of both services, by their key in `urls` of the ready line."""

    DEVICE_CLOUD = "device_cloud"
    API = "api"
    CHUNKS = "chunks"
    INGRESS = "ingress"
    FILES = "files"
    PROVISIONING = "provisioning"
    DOWNLOADS = "downloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the query, the path or a header.

    One whose schema is an array may be repeated. One whose schema is an object stands for several
    parameters that depend on each other, by the names of its fields.
    """

    name: str
    schema: Schema
    where: str = "query"
    required: bool = False
    description: str = ""
    on_day: Callable[[float], Schema] | None = None
    """Returns the schema at a Unix time, where it depends on the day."""

    def schema_at(self, now_s: float) -> Schema:
        """Return the schema at a Unix time."""
        return self.schema if self.on_day is None else self.on_day(now_s)

    def at(self, now_s: float) -> Parameter:
        """Return the parameter as it is at a Unix time."""
        return replace(self, schema=self.schema_at(now_s), on_day=None)


def in_query(**schemas: Schema) -> tuple[Parameter, ...]:
    """Return parameters of the query that may be missing, by name."""
    return tuple(Parameter(name=name, schema=schema) for name, schema in schemas.items())


def in_path(name: str, schema: Schema) -> Parameter:
    """Return a parameter of the path."""
    return Parameter(name=name, schema=schema, where="path", required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An operation that can follow, with what an answer or its request holds."""

    status: int
    to: str
    """The operationId."""
    parameters: Mapping[str, str]
    """OpenAPI runtime expressions by the names of the parameters of `to`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method on a path, as the document describes it."""

    method: str
    path: str
    name: str
    """The operationId."""
    summary: str
    tag: str
    security: tuple[str, ...] = ()
    """Names of security schemes of the document, any of which will do; () where it takes none."""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    bodies: Mapping[str, Schema] = field(default_factory=dict)
    """Schema by media type; none where there is no body."""
    body_required: bool = True
    answers: Mapping[int, Mapping[str, Schema]] = field(default_factory=dict)
    """Schema by media type by status; {} for an answer without a body."""
    refusals: tuple[int, ...] = ()
    """Statuses that carry the service's error body."""
    links: tuple[Link, ...] = ()
    deprecated: bool = False
