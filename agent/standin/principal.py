"""Authentication: the principal that the headers of a request stand for.

Authorization is up to each route. The organization token opens both halves (clauses O4.6, D10.7),
so both use this module.
"""

import base64
import re
from dataclasses import dataclass
from enum import Enum
from secrets import compare_digest

from msgspec import Struct
from starlette.requests import Request

from agent.standin import jwt
from agent.standin.keys import EVALUATION_TOKENS, SERVICE_KEYS, SERVICES, TRIAL_S
from agent.standin.state import API_KEYS, ORGANIZATION_TOKENS, PROJECTS, TEAMS, USERS, Cloud
from agent.standin.store import TableOf

GRACE_S = 60 * 60
"""How long a superseded API key stays valid (clause D10.1)."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
PROJECT_KEY_HEADERS = ("service-project-key", "memfault-project-key")


class DeviceKeys(Struct, kw_only=True):
    """The public keys (PEM) of a device: one that was uploaded, one of a JITP certificate."""

    device_id: str
    team: str
    public: str = ""
    jitp: str = ""


DEVICE_KEYS = TableOf("device_keys", DeviceKeys)
"""By device id, in lower case."""


class CredentialKind(Enum):
    """The kinds of credential (clauses D10, O4)."""

    API_KEY = "API key"
    DEVICE_JWT = "device JWT"
    SERVICE_JWT = "service-key JWT"
    EVALUATION_TOKEN = "evaluation token"
    ORGANIZATION_TOKEN = "organization auth token"
    BASIC = "Basic"
    PROJECT_KEY = "project key"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Principal:
    """The sender of a request. If `kind` is NONE, `reason` says why nobody was identified."""

    kind: CredentialKind
    team: str = ""
    """API key, device, service and evaluation: the team (tenant) id."""
    email: str = ""
    """API key, Basic."""
    role: str = ""
    """API key: the user's role in the team."""
    device_id: str = ""
    """Device JWT: the device. Service JWT: the device that is served, "" for none."""
    service: str = ""
    """Service JWT: the service whose key signed it."""
    organization: str = ""
    """Organization token: its organization. Project key: the project's."""
    project: str = ""
    """Project key: the project's slug."""
    with_password: bool = False
    """Basic: the password, not the user API key."""
    reason: str = ""


def identify(request: Request, cloud: Cloud) -> Principal:
    """Return the sender of a request, by the Authorization header, else by the project key."""
    header = request.headers.get("authorization")
    if header is None:
        return _by_project_key(request, cloud)
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "basic":
        return _by_basic(value, cloud)
    if scheme.lower() != "bearer" or not value or value != value.strip():
        return nobody("the Authorization header is not `Bearer <credential>`")
    return by_bearer(value, cloud)


def by_bearer(value: str, cloud: Cloud) -> Principal:
    """Return the owner of an API key, an organization token or a JWT."""
    record = cloud.table(API_KEYS).get(value)
    if record is not None:
        superseded = record.superseded_at
        if superseded is not None and cloud.clock.time() > superseded + GRACE_S:
            return nobody("this API key was replaced more than 60 minutes ago")
        return Principal(
            CredentialKind.API_KEY, team=record.team, email=record.email, role=record.role
        )
    token = cloud.table(ORGANIZATION_TOKENS).get(value)
    if token is not None:
        return Principal(CredentialKind.ORGANIZATION_TOKEN, organization=token.organization)
    if value.count(".") == 2:
        return _by_jwt(value, cloud)
    return nobody("the credential is not known")


def nobody(reason: str) -> Principal:
    """Return the principal of a request whose credential is missing or wrong."""
    return Principal(CredentialKind.NONE, reason=reason)


def _by_project_key(request: Request, cloud: Cloud) -> Principal:
    key = next(
        (request.headers[name] for name in PROJECT_KEY_HEADERS if name in request.headers), ""
    )
    if not key:
        return nobody("no credential was sent")
    for project in cloud.table(PROJECTS).values():
        if compare_digest(project.project_key.encode(), key.encode()):
            return Principal(
                CredentialKind.PROJECT_KEY, organization=project.organization, project=project.slug
            )
    return nobody("the project key is not known")


def _by_basic(value: str, cloud: Cloud) -> Principal:
    try:
        email, _, given = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return nobody("the Basic credential is malformed")
    user = cloud.table(USERS).get(email)
    if user is not None:
        for stored, with_password in ((user.password, True), (user.user_api_key, False)):
            if stored and compare_digest(stored.encode(), given.encode()):
                return Principal(CredentialKind.BASIC, email=email, with_password=with_password)
    return nobody("email and password or user API key do not match")


def _by_jwt(value: str, cloud: Cloud) -> Principal:
    try:
        token = jwt.parse(value, cloud.clock.time())
    except jwt.BadToken as error:
        return nobody(str(error))
    return _by_team(token, cloud) if "aud" in token.claims else _by_device(token, cloud)


def _by_team(token: jwt.Token, cloud: Cloud) -> Principal:
    """Return the owner of a service or evaluation key: `aud` is the team (D10.4, D10.6)."""
    team = token.claims["aud"]
    if team not in cloud.table(TEAMS):
        return nobody("aud is not the id of a team")
    for service in SERVICES:
        key = cloud.table(SERVICE_KEYS).get(f"{team}/{service}")
        if key is not None and token.is_signed_by(key.public):
            served = token.claims.get("sub", "")
            return Principal(
                CredentialKind.SERVICE_JWT, team=team, service=service, device_id=served
            )
    trial = cloud.table(EVALUATION_TOKENS).get(team)
    if trial is not None and token.is_signed_by(trial.public):
        if cloud.clock.time() > trial.created_at + TRIAL_S:
            return nobody("the trial of 30 days is over: a JWT of a service key is needed")
        return Principal(CredentialKind.EVALUATION_TOKEN, team=team)
    return nobody(
        "no service key of this team made the signature; a token of a device's own key has no aud"
    )


def _by_device(token: jwt.Token, cloud: Cloud) -> Principal:
    """Return the device by its id, which is `sub` or the UUID in `iss` (clause D10.3)."""
    device_id = token.claims.get("sub") or _uuid(token.claims.get("iss", ""))
    if not device_id:
        return nobody("a device's JWT names the device: `sub`, or its UUID in `iss`")
    record = cloud.table(DEVICE_KEYS).get(device_id.casefold())
    if record is None:
        return nobody("no public key of this device is registered")
    # The key of an upload or a certificate comes before that of the JITP certificate.
    if any(token.is_signed_by(pem) for pem in (record.public, record.jitp) if pem):
        return Principal(CredentialKind.DEVICE_JWT, team=record.team, device_id=record.device_id)
    return nobody("no public key of this device verifies the signature")


def _uuid(issuer: str) -> str:
    """Return the UUID of `<chip>.<uuid>`, "" where there is none."""
    text = issuer.rpartition(".")[2]
    return text if _UUID.fullmatch(text) else ""
