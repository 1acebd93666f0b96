"""Access: the credentials that an operation of the device cloud takes (D1.5, D8.4, D10).

The document names them by the schemes of which a request is checked to have one.
"""

from dataclasses import dataclass

from starlette.requests import Request

from agent.standin import jwt
from agent.standin.device_cloud.refusals import forbidden, not_found, unauthorized
from agent.standin.device_cloud.tables import CLAIMED
from agent.standin.principal import CredentialKind, Principal, identify, nobody
from agent.standin.state import Cloud

READ_ONLY_ROLES = frozenset({"viewer"})
SIMPLE_TOKEN = "Simple Token"
JSON_WEB_TOKEN = "JSON Web Token"
EVALUATION_TOKEN = "Evaluation Token"
ORGANIZATION_TOKEN = "Organization Auth Token"
_KINDS = {
    SIMPLE_TOKEN: {CredentialKind.API_KEY},
    JSON_WEB_TOKEN: {CredentialKind.DEVICE_JWT, CredentialKind.SERVICE_JWT},
    EVALUATION_TOKEN: {CredentialKind.EVALUATION_TOKEN},
    ORGANIZATION_TOKEN: {CredentialKind.ORGANIZATION_TOKEN},
}


@dataclass(frozen=True, slots=True)
class AcceptedSchemes:
    """Who may call an operation: anyone with a credential of one of these schemes."""

    schemes: tuple[str, ...] = ()
    """() where no credential is needed."""
    service: str = ""
    """The service that a proxy's JWT has to be for."""

    @property
    def components(self) -> tuple[str, ...]:
        """The names of the schemes as components of the document."""
        return tuple(map(component, self.schemes))

    @property
    def description(self) -> str:
        """The schemes by the names that the service gives them."""
        return f"Credential: {' or '.join(self.schemes)}." if self.schemes else ""


def component(scheme: str) -> str:
    """Return the name of a scheme without blanks, which OpenAPI takes in no component's name."""
    return scheme.replace(" ", "")


OPEN = AcceptedSchemes()
USER = AcceptedSchemes((SIMPLE_TOKEN,))
DEVICE = AcceptedSchemes((SIMPLE_TOKEN, JSON_WEB_TOKEN), service="device")
FOTA_DEVICE = AcceptedSchemes((SIMPLE_TOKEN, JSON_WEB_TOKEN), service="fota")
LEGACY_LOCATION = AcceptedSchemes((JSON_WEB_TOKEN, EVALUATION_TOKEN), service="location")
IDENTITY = AcceptedSchemes((JSON_WEB_TOKEN,), service="identity")
"""A kit that asks for its provisioning commands, with a token of its identity key."""
PROJECT = AcceptedSchemes((ORGANIZATION_TOKEN,))
PROJECT_LOCATION = AcceptedSchemes((ORGANIZATION_TOKEN,), service="location")


def authenticate(request: Request, cloud: Cloud, access: AcceptedSchemes) -> Principal:
    """Return the caller. Raises 401 without a fitting credential, 403 where it may not do this."""
    if access is LEGACY_LOCATION and not cloud.settings.legacy_location:
        raise not_found("migrated: use the path with organization and project")
    if not access.schemes:
        return nobody("")
    if access is IDENTITY:
        return _claimed_kit(request, cloud)
    principal = identify(request, cloud)
    _require_scheme(principal, access)
    if principal.role in READ_ONLY_ROLES and request.method not in {"GET", "HEAD"}:
        raise forbidden(f"the role {principal.role} may read and not change")
    path = request.path_params
    device_id = path.get("device_id", "")
    if device_id and principal.device_id and principal.device_id.casefold() != device_id.casefold():
        raise forbidden("the JWT speaks for another device")
    if principal.kind is CredentialKind.ORGANIZATION_TOKEN:
        project = cloud.project(path["organization"], path["project"])
        if project is None or principal.organization != path["organization"]:
            # One answer for both: a token must not reveal the slugs of another organization.
            raise unauthorized("the token does not belong to this organization and project")
        if access.service == "location" and not project.location:
            raise forbidden("the project does not have location services enabled")
    return principal


def _require_scheme(principal: Principal, access: AcceptedSchemes) -> None:
    """Raise 401 for a credential of a kind, or for a service, that the access does not take."""
    if principal.kind is CredentialKind.NONE:
        raise unauthorized(principal.reason)
    kinds = {kind for scheme in access.schemes for kind in _KINDS[scheme]}
    if principal.kind not in kinds:
        taken = ", ".join(sorted(kind.value for kind in kinds))
        raise unauthorized(f"this operation takes {taken}, not {principal.kind.value}")
    if principal.kind is CredentialKind.SERVICE_JWT and principal.service != access.service:
        raise unauthorized(f"a service key for {principal.service} does not open {access.service}")


def _claimed_kit(request: Request, cloud: Cloud) -> Principal:
    """Return the claimed device whose identity a token states. Raises 401, 403 where none is.

    Its signature is not verified: the stand-in has no identity keys of the chip maker.
    """
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    try:
        token = jwt.parse(value if scheme == "Bearer" else "", cloud.clock.time(), ("iss",))
    except jwt.BadToken as wrong:
        raise unauthorized(str(wrong)) from wrong
    device = token.claims.get("iss", "").rpartition(".")[2].lower()
    claimed = cloud.table(CLAIMED).get(device)
    if claimed is None:
        raise forbidden("the device is not claimed")
    return Principal(CredentialKind.DEVICE_JWT, team=claimed.team, device_id=device)
