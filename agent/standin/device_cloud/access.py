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
    """Return the sender of a request for one device: by API key, its JWT or a service key."""
    principal = _require(
        request,
        cloud,
        frozenset({CredentialKind.API_KEY, CredentialKind.DEVICE_JWT, CredentialKind.SERVICE_JWT}),
    )
    if principal.kind is CredentialKind.SERVICE_JWT and principal.service != service:
        raise unauthorized(f"a service key for {principal.service} does not open {service}")
    if principal.device_id and principal.device_id.casefold() != device_id.casefold():
        raise forbidden("the JWT speaks for another device")
    return principal


def location_client(request: Request, cloud: Cloud) -> Principal:
    """Return the user of a legacy location path: a device, a proxy or an evaluation."""
    kinds = frozenset(
        {CredentialKind.DEVICE_JWT, CredentialKind.SERVICE_JWT, CredentialKind.EVALUATION_TOKEN}
    )
    principal = _require(request, cloud, kinds)
    if principal.kind is CredentialKind.SERVICE_JWT and principal.service != "location":
        raise unauthorized(f"a service key for {principal.service} does not open location")
    return principal


def project_client(request: Request, cloud: Cloud, organization: str, project: str) -> Principal:
    """Return the user of a path of a project, by the token of its organization."""
    principal = _require(
        request, cloud, frozenset({CredentialKind.ORGANIZATION_TOKEN}), change=False
    )
    if cloud.project(organization, project) is None or principal.organization != organization:
        # One answer for both: a token must not reveal the slugs of another organization.
        raise unauthorized("the token does not belong to this organization and project")
    return principal


def project_location_client(
    request: Request, cloud: Cloud, organization: str, project: str
) -> Principal:
    """Return the user of a location path of the organization form (clauses D8.4, D10.7)."""
    principal = project_client(request, cloud, organization, project)
    owned = cloud.project(organization, project)
    if owned is None or not owned.location:
        raise forbidden("the project does not have location services enabled")
    return principal


def _require(
    request: Request, cloud: Cloud, kinds: frozenset[CredentialKind], *, change: bool | None = None
) -> Principal:
    principal = identify(request, cloud)
    if principal.kind is CredentialKind.NONE:
        raise unauthorized(principal.reason)
    if principal.kind not in kinds:
        taken = ", ".join(sorted(kind.value for kind in kinds))
        raise unauthorized(f"this operation takes {taken}, not {principal.kind.value}")
    changes = request.method not in {"GET", "HEAD"} if change is None else change
    if changes and principal.kind is CredentialKind.API_KEY and principal.role in READ_ONLY_ROLES:
        raise forbidden(f"the role {principal.role} may read and not change")
    return principal
