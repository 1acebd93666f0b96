"""The latest release for a device, with the project key and a short URL (clause O5.4)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response

from agent.standin.errors import JSON
from agent.standin.hosts import Host
from agent.standin.observability import shapes, views
from agent.standin.observability.access import Access
from agent.standin.observability.exchange import JSON_TYPE, Exchange, Served
from agent.standin.observability.limits import limits
from agent.standin.observability.project import is_semver
from agent.standin.observability.refusals import invalid_fields
from agent.standin.observability.slugs import SLUG, VERSION, precedence
from agent.standin.operation import Operation, Parameter

if TYPE_CHECKING:
    from agent.standin.observability.exchange import Handler
    from agent.standin.observability.project import Project, Record
    from agent.standin.schema import Schema

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
    best: Record | None = None
    for deployment in project.table("deployments").values():
        if deployment["cohort"] != device["cohort"] or deployment["status"] == "aborted":
            continue
        if not _chosen(serial, deployment):
            continue
        release = project.table("releases").get(deployment["release"])
        if release is None or not _artifact(release, hardware, kind):
            continue
        if best is None or precedence(release["version"]) > precedence(best["version"]):
            best = release
    if best is None or current == best["version"]:
        return None
    if current and is_semver(current) and precedence(current) >= precedence(best["version"]):
        return None
    return best


def _require_known(project: Project, hardware: str, kind: str) -> None:
    """400 for a hardware version or software type that nothing of the project has."""
    releases, devices = project.table("releases").values(), project.table("devices").values()
    artifacts = [one for release in releases for one in release["artifacts"]]
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
