"""Authorization: which credentials an operation of the device cloud takes (D1.5, D10)."""

from __future__ import annotations

from starlette.requests import Request

from agent.standin.device_cloud.refusals import forbidden, unauthorized
from agent.standin.principal import CredentialKind, Principal, identify
from agent.standin.state import Cloud

READ_ONLY_ROLES = frozenset({"viewer"})


def user(request: Request, cloud: Cloud) -> Principal:
    """Return the user of an operation that takes an API key only."""
    return _require(request, cloud, frozenset({CredentialKind.API_KEY}))


def user_or_device(request: Request, cloud: Cloud, device_id: str, service: str) -> Principal:
    """Return who sent a request for one device: with an API key, its JWT or a service key."""
    who = _require(
        request,
        cloud,
        frozenset({CredentialKind.API_KEY, CredentialKind.DEVICE_JWT, CredentialKind.SERVICE_JWT}),
    )
    if who.kind is CredentialKind.SERVICE_JWT and who.service != service:
        raise unauthorized(f"a service key for {who.service} does not open {service}")
    if who.device_id and who.device_id.casefold() != device_id.casefold():
        raise forbidden("the JWT speaks for another device")
    return who


def location_client(request: Request, cloud: Cloud) -> Principal:
    """Return who uses a legacy location path: a device, a proxy or an evaluation."""
    kinds = frozenset(
        {CredentialKind.DEVICE_JWT, CredentialKind.SERVICE_JWT, CredentialKind.EVALUATION_TOKEN}
    )
    who = _require(request, cloud, kinds)
    if who.kind is CredentialKind.SERVICE_JWT and who.service != "location":
        raise unauthorized(f"a service key for {who.service} does not open location")
    return who


def project_client(request: Request, cloud: Cloud, organization: str, project: str) -> Principal:
    """Return who uses a path of a project, with the token of its organization."""
    who = _require(request, cloud, frozenset({CredentialKind.ORGANIZATION_TOKEN}), change=False)
    if cloud.project(organization, project) is None or who.organization != organization:
        # One answer for both: a token must not reveal the slugs of another organization.
        raise unauthorized("the token does not belong to this organization and project")
    return who


def project_location_client(
    request: Request, cloud: Cloud, organization: str, project: str
) -> Principal:
    """Return who uses a location path of the organization form (clauses D8.4, D10.7)."""
    who = project_client(request, cloud, organization, project)
    found = cloud.project(organization, project)
    if found is None or not found["location"]:
        raise forbidden("the project does not have location services enabled")
    return who


def _require(
    request: Request, cloud: Cloud, kinds: frozenset[CredentialKind], *, change: bool | None = None
) -> Principal:
    who = identify(request, cloud)
    if who.kind is CredentialKind.NONE:
        raise unauthorized(who.reason)
    if who.kind not in kinds:
        taken = ", ".join(sorted(kind.value for kind in kinds))
        raise unauthorized(f"this operation takes {taken}, not {who.kind.value}")
    changes = request.method not in {"GET", "HEAD"} if change is None else change
    if changes and who.kind is CredentialKind.API_KEY and who.role in READ_ONLY_ROLES:
        raise forbidden(f"the role {who.role} may read and not change")
    return who
