"""The ten kinds of resources, their paths and the rules for their keys (clause O1.2). Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from urllib.parse import quote

from agent.errors import UsageError
from agent.observability.api.resource_names import check_release_version, check_slug


class ResourceLevel(Enum):
    """The level of the path that holds a kind of resource."""

    ROOT = "root"
    ORGANIZATION = "organization"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """One kind of resource: its names, its level, and the check of its key."""

    name: str
    plural: str
    level: ResourceLevel
    key: Callable[[str], str]
    not_created: str = ""
    """Why it cannot be created by this API; "" if it can."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The organization and the project that a call is about."""

    organization: str = ""
    project: str = ""


def _identifier(value: str) -> str:
    if not value or value in {".", ".."} or not value.isprintable():
        raise UsageError(f"{value!r} cannot be an id")
    return value


ORGANIZATION = ResourceKind(
    "organization", "organizations", ResourceLevel.ROOT, partial(check_slug, "organization")
)
PROJECT = ResourceKind(
    "project", "projects", ResourceLevel.ORGANIZATION, partial(check_slug, "project")
)
KINDS = {
    kind.name: kind
    for kind in (
        ORGANIZATION,
        PROJECT,
        ResourceKind("release", "releases", ResourceLevel.PROJECT, check_release_version),
        ResourceKind("cohort", "cohorts", ResourceLevel.PROJECT, partial(check_slug, "cohort")),
        ResourceKind(
            "device", "devices", ResourceLevel.PROJECT, partial(check_slug, "device serial")
        ),
        ResourceKind("deployment", "deployments", ResourceLevel.PROJECT, _identifier),
        ResourceKind(
            "event",
            "events",
            ResourceLevel.PROJECT,
            _identifier,
            not_created="events are pushed to the ingress host: `cellagent report event`",
        ),
        ResourceKind(
            "trace",
            "traces",
            ResourceLevel.PROJECT,
            _identifier,
            not_created="traces are made from what devices push: `cellagent report coredump FILE`",
        ),
        ResourceKind("issue", "issues", ResourceLevel.PROJECT, _identifier),
        ResourceKind("install", "installs", ResourceLevel.PROJECT, _identifier),
    )
}


def path(kind: ResourceKind, scope: Scope, key: str | None = None) -> str:
    """Return the path of a resource, or of all of its kind. Raises UsageError."""
    parts = ["/api/v0"]
    if kind.level is not ResourceLevel.ROOT:
        parts += ["organizations", _slug("organization", scope.organization)]
    if kind.level is ResourceLevel.PROJECT:
        parts += ["projects", _slug("project", scope.project)]
    return "/".join(parts) + (f"/{kind.plural}" if key is None else related(kind, key))


def related(kind: ResourceKind, key: str) -> str:
    """Return what follows a resource's path to name a related one. Raises UsageError."""
    return f"/{kind.plural}/{quote(kind.key(key), safe='')}"


def _slug(what: str, value: str) -> str:
    if not value:
        raise UsageError(
            f"no {what} is given", hint=f"`cellagent config set account.{what} SLUG`, or --{what}"
        )
    return check_slug(what, value)
