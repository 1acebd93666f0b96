"""Polls of devices with the project key: latest release (clause O5.4) and configuration."""

import zlib

from starlette.responses import PlainTextResponse, Response

from agent.standin.core.operation import Host, Parameter
from agent.standin.core.responses import JSON
from agent.standin.core.schema import NUMBER, OBJECT, object_schema
from agent.standin.observability import file_storage, schemas, tables
from agent.standin.observability import project as projects
from agent.standin.observability.access import Access
from agent.standin.observability.operations import RequestContext, declare
from agent.standin.observability.rate_limits import count_request
from agent.standin.observability.refusals import invalid_fields
from agent.standin.observability.resources import changes, serializers
from agent.standin.observability.resources.lists import item_schema
from agent.standin.observability.upload_commits import IDENTITY

_PARAMETERS = (
    Parameter(name="device_serial", schema=projects.SLUG, required=True),
    Parameter(name="hardware_version", schema=projects.VERSION, required=True),
    Parameter(name="software_type", schema=projects.VERSION, required=True),
    Parameter(
        name="current_version",
        schema={"type": "string", "maxLength": 128},
        description="What the device runs; without it the newest is returned.",
    ),
)


_CONFIG_REVISION = 1
_RESOLUTIONS = ("debugging", "logging", "monitoring")
_CONFIG_ANSWER = item_schema(
    object_schema(revision=NUMBER, completed={"type": ["integer", "null"]}, config=OBJECT)
)


async def _release(context: RequestContext) -> Response:
    newest = _newest(context)
    if newest is None:
        return _up_to_date()
    # The artifact of this device comes first: small devices look no further.
    artifacts = sorted(newest.artifacts, key=lambda one: not _is_for(context, one))
    return JSON(serializers.release(context.project, newest, artifacts))


async def _url(context: RequestContext) -> Response:
    newest = _newest(context)
    if newest is None:
        return _up_to_date()
    artifact = next(one for one in newest.artifacts if _is_for(context, one))
    url = file_storage.signed_url(context.cloud, artifact.blob, artifact.filename)
    return PlainTextResponse(url)


def _is_for(context: RequestContext, artifact: tables.Artifact) -> bool:
    """Return whether an artifact is for the hardware and the software type that asks."""
    asks = (context.query["hardware_version"], context.query["software_type"])
    return (artifact.hardware_version, artifact.software_type) == asks


def _newest(context: RequestContext) -> tables.Release | None:
    project, query = context.project, context.query
    serial, hardware, kind = (
        query[name] for name in ("device_serial", "hardware_version", "software_type")
    )
    count_request(project, "releases", serial)
    _require_known(project, hardware, kind)
    device = project.device(serial, hardware)
    current = query.get("current_version")
    offers = [
        release
        for release in _deployed(project, device)
        if any(_is_for(context, one) for one in release.artifacts) and _is_offered(release, current)
    ]
    # A release that must not be skipped comes first; a delta precedes a full release.
    forced = [release for release in offers if release.must_pass_through] if current else []
    if forced:
        return min(forced, key=lambda one: (projects.precedence(one.version), not one.delta_from))
    return max(
        offers,
        key=lambda one: (projects.precedence(one.version), bool(one.delta_from)),
        default=None,
    )


def _deployed(project: projects.Project, device: tables.ObservedDevice) -> list[tables.Release]:
    """Return the full and delta releases that are deployed to a device, or the one of its own."""
    own = changes.release_of(project, "", device.release or "")
    if own is not None:
        return [own]
    releases = [
        changes.release_of(project, deployment.delta_from, deployment.release)
        for deployment in project.table(tables.DEPLOYMENTS).values()
        if deployment.cohort == device.cohort
        and deployment.is_active
        and _in_rollout(device.device_serial, deployment)
    ]
    return [release for release in releases if release is not None]


def _is_offered(release: tables.Release, current: str | None) -> bool:
    """Return whether a release updates a device that runs `current`."""
    if release.delta_from:
        return current == release.delta_from
    if not current or not projects.is_semver(current):
        return current != release.version
    return projects.precedence(current) < projects.precedence(release.version)


def _require_known(project: projects.Project, hardware: str, kind: str) -> None:
    """Raise 400 for a hardware version or software type that the project does not have."""
    both = (project.table(tables.RELEASES), project.table(tables.DELTA_RELEASES))
    artifacts = [one for table in both for release in table.values() for one in release.artifacts]
    devices = project.table(tables.DEVICES).values()
    known = {
        *(one.hardware_version for one in artifacts),
        *(one.hardware_version for one in devices),
    }
    if hardware not in known:
        raise invalid_fields({"hardware_version": ["Unknown hardware version."]})
    kinds = {one.software_type for one in artifacts}
    if kind not in kinds and not any(kind in one.software for one in devices):
        raise invalid_fields({"software_type": ["Unknown software type."]})


def _in_rollout(serial: str, deployment: tables.Deployment) -> bool:
    """Return whether a device is in the percentage of its cohort that a rollout has reached."""
    percentile = zlib.crc32(f"{deployment.id}/{serial}".encode()) % 100
    return percentile < deployment.rollout_percent


def _up_to_date() -> Response:
    return Response(status_code=204, headers={"memfault-reason": "latest"})


async def _device_config(context: RequestContext) -> Response:
    device = context.body["device"]
    record = context.project.device(device["device_serial"], device["hardware_version"])
    sampling = {f"{name}.resolution": "normal" for name in _RESOLUTIONS}
    return JSON(
        {
            "data": {
                "revision": _CONFIG_REVISION,
                # A device confirms in its next archive.
                "completed": record.config_revision,
                "config": {"memfault": {"sampling": sampling}},
            }
        }
    )


_NEWEST = "The newest release that is handed out to a device; 204 where it runs it"
_HOSTS = (Host.API, Host.INGRESS)
OPERATIONS = (
    declare(
        "GET /api/v0/releases/latest", "LatestRelease", _NEWEST, _release,
        tag="releases", access=Access.PROJECT_KEY, hosts=_HOSTS, parameters=_PARAMETERS,
        answers={200: schemas.RELEASE, 204: None}, refusals=(429,),
    ),
    declare(
        "GET /api/v0/releases/latest/url", "LatestReleaseUrl", _NEWEST, _url,
        tag="releases", access=Access.PROJECT_KEY, hosts=_HOSTS, parameters=_PARAMETERS,
        answered_as="text/plain", answers={200: {"type": "string"}, 204: None},
        refusals=(429,),
    ),
    declare(
        "POST /api/v0/device-config", "GetDeviceConfig",
        "The configuration of a device, and which revision it has confirmed", _device_config,
        tag="devices", access=Access.PROJECT_KEY, hosts=_HOSTS,
        body=object_schema(device=IDENTITY), answers={200: _CONFIG_ANSWER},
    ),
)  # fmt: skip
