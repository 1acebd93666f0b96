"""The latest release for a device, with the project key and a short URL (clause O5.4)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response

from agent.standin.core.operation import Host, Operation, Parameter
from agent.standin.core.responses import JSON
from agent.standin.observability import shapes
from agent.standin.observability.access import Access
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served
from agent.standin.observability.project import SLUG, VERSION, is_semver, precedence
from agent.standin.observability.rate_limits import limits
from agent.standin.observability.refusals import invalid_fields
from agent.standin.observability.resources import changes, views

if TYPE_CHECKING:
    from agent.standin.core.schema import Schema
    from agent.standin.observability.exchange import Handler
    from agent.standin.observability.project import Project, Record

_PARAMETERS = (
    Parameter(name="device_serial", schema=SLUG, required=True),
    Parameter(name="hardware_version", schema=VERSION, required=True),
    Parameter(name="software_type", schema=VERSION, required=True),
    Parameter(
        name="current_version",
        schema={"type": "string", "maxLength": 128},
        description="What the device runs; without it the newest is returned.",
    ),
)


def served() -> list[Served]:
    """Return the two forms: the release, and the URL of its payload alone."""
    return [
        _declare("", "LatestRelease", {JSON_TYPE: shapes.RELEASE}, _release),
        _declare("/url", "LatestReleaseUrl", {"text/plain": {"type": "string"}}, _url),
    ]


def _declare(suffix: str, name: str, answer: dict[str, Schema], handler: Handler) -> Served:
    operation = Operation(
        method="GET",
        path="/api/v0/releases/latest" + suffix,
        name=name,
        summary="The newest release that is handed out to a device; 204 where it runs it",
        description="Accepts the project key.",
        tag="releases",
        security=("ProjectKey",),
        parameters=_PARAMETERS,
        answers={200: answer, 204: {}},
        refusals=(400, 403, 429),
    )
    return Served(
        operation=operation,
        handler=handler,
        access=Access.PROJECT_KEY,
        hosts=(Host.API, Host.INGRESS),
    )


async def _release(exchange: Exchange) -> Response:
    shown = _shown(exchange)
    return _nothing() if shown is None else JSON(shown)


async def _url(exchange: Exchange) -> Response:
    shown = _shown(exchange)
    return _nothing() if shown is None else PlainTextResponse(shown["artifacts"][0]["url"])


def _shown(exchange: Exchange) -> dict[str, Any] | None:
    found = _newest(exchange)
    if found is None:
        return None
    base = str(exchange.request.base_url).rstrip("/")
    shown = views.release(exchange.project, found, exchange.cloud.urls.get("files", base))
    wanted = (exchange.query["hardware_version"], exchange.query["software_type"])
    # The artifact of this device comes first: small devices look no further.
    shown["artifacts"].sort(
        key=lambda one: (one["hardware_version"], one["software_type"]) != wanted
    )
    return shown


def _newest(exchange: Exchange) -> Record | None:
    project, query = exchange.project, exchange.query
    serial, hardware, kind = (
        query[name] for name in ("device_serial", "hardware_version", "software_type")
    )
    limits(exchange.cloud).count(project, "releases", serial)
    _require_known(project, hardware, kind)
    device = project.device(serial, hardware)
    current = query.get("current_version")
    offers = [
        release
        for release in _deployed(project, device["cohort"], serial)
        if _artifact(release, hardware, kind) and _leads_on(release, current)
    ]
    # A release that must not be jumped over comes first; a step goes before the whole.
    forced = [release for release in offers if release["must_pass_through"]] if current else []
    if forced:
        return min(forced, key=lambda one: (precedence(one["version"]), not one["delta_from"]))
    return max(
        offers, key=lambda one: (precedence(one["version"]), bool(one["delta_from"])), default=None
    )


def _deployed(project: Project, cohort: str, serial: str) -> list[Record]:
    """Return the releases, whole and in steps, that are handed out to a device."""
    found = [
        changes.release_of(project, deployment)
        for deployment in project.table("deployments").values()
        if deployment["cohort"] == cohort
        and deployment["status"] != "aborted"
        and _chosen(serial, deployment)
    ]
    return [release for release in found if release is not None]


def _leads_on(release: Record, current: str | None) -> bool:
    """Say whether a release is for a device that runs `current`."""
    if release["delta_from"]:
        return bool(current == release["delta_from"])
    if not current or not is_semver(current):
        return bool(current != release["version"])
    return bool(precedence(current) < precedence(release["version"]))


def _require_known(project: Project, hardware: str, kind: str) -> None:
    """400 for a hardware version or software type that nothing of the project has."""
    releases = [*project.table("releases").values(), *project.table("delta-releases").values()]
    artifacts = [one for release in releases for one in release["artifacts"]]
    devices = project.table("devices").values()
    if hardware not in {one["hardware_version"] for one in (*artifacts, *devices)}:
        raise invalid_fields({"hardware_version": ["Unknown hardware version."]})
    kinds = {one["software_type"] for one in artifacts}
    if kind not in kinds and not any(kind in one["software"] for one in devices):
        raise invalid_fields({"software_type": ["Unknown software type."]})


def _artifact(release: Record, hardware: str, kind: str) -> bool:
    return any(
        (one["hardware_version"], one["software_type"]) == (hardware, kind)
        for one in release["artifacts"]
    )


def _chosen(serial: str, deployment: Record) -> bool:
    """Say whether a device is in the part of its cohort that a rollout has reached."""
    place = zlib.crc32(f"{deployment['id']}/{serial}".encode()) % 100
    return bool(place < deployment["rollout_percent"])


def _nothing() -> Response:
    return Response(status_code=204, headers={"memfault-reason": "latest"})
