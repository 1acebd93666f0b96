"""The ten resources that have a path, and how each is named (clause O1.2). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import quote

from agent.errors import UsageError
from agent.observability.api.slugs import release_version, slug

if TYPE_CHECKING:
    from collections.abc import Callable


class Level(Enum):
    """What a resource lies under."""

    ROOT = "root"
    ORGANIZATION = "organization"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource: its words, where it lies, and the rule for its key."""

    name: str
    plural: str
    level: Level
    key: Callable[[str], str]
    not_created: str = ""
    """Why it cannot be created here, "" where it can."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The organization and the project that a call is about."""

    organization: str = ""
    project: str = ""


def _identifier(value: str) -> str:
    if not value or value in {".", ".."} or not value.isprintable():
        raise UsageError(f"{value!r} cannot be an id")
    return value


def _slug_of(what: str) -> Callable[[str], str]:
    return lambda value: slug(value, what)


ORGANIZATION = Kind("organization", "organizations", Level.ROOT, _slug_of("organization"))
PROJECT = Kind("project", "projects", Level.ORGANIZATION, _slug_of("project"))
RELEASE = Kind("release", "releases", Level.PROJECT, release_version)
COHORT = Kind("cohort", "cohorts", Level.PROJECT, _slug_of("cohort"))
DEVICE = Kind("device", "devices", Level.PROJECT, _slug_of("device serial"))
DEPLOYMENT = Kind("deployment", "deployments", Level.PROJECT, _identifier)
EVENT = Kind(
    "event",
    "events",
    Level.PROJECT,
    _identifier,
    not_created="events are pushed to the ingress host: `cellagent report event`",
)
TRACE = Kind(
    "trace",
    "traces",
    Level.PROJECT,
    _identifier,
    not_created="traces are made from what devices push: `cellagent report coredump`",
)
ISSUE = Kind("issue", "issues", Level.PROJECT, _identifier)
INSTALL = Kind("install", "installs", Level.PROJECT, _identifier)

KINDS = {
    kind.name: kind
    for kind in (
        ORGANIZATION,
        PROJECT,
        RELEASE,
        COHORT,
        DEVICE,
        DEPLOYMENT,
        EVENT,
        TRACE,
        ISSUE,
        INSTALL,
    )
}


def path(kind: Kind, scope: Scope, key: str | None = None) -> str:
    """Return the path of a resource, or of all of its kind. Raises UsageError."""
    parts = ["/api/v0"]
    if kind.level is not Level.ROOT:
        parts += ["organizations", slug(_given(scope.organization, "organization"), "organization")]
    if kind.level is Level.PROJECT:
        parts += ["projects", slug(_given(scope.project, "project"), "project")]
    parts.append(kind.plural)
    if key is not None:
        parts.append(quote(kind.key(key), safe=""))
    return "/".join(parts)


def related(kind: Kind, key: str) -> str:
    """Return how a resource's path goes on to one that it is related to. Raises UsageError."""
    return f"/{kind.plural}/{quote(kind.key(key), safe='')}"


def _given(value: str, what: str) -> str:
    if not value:
        raise UsageError(
            f"no {what} is given", hint=f"`cellagent config set account.{what} SLUG`, or --{what}"
        )
    return value
