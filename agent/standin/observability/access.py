"""The credentials that an operation accepts, and the roles of their owners (clause O4)."""

import base64
from enum import Enum

from starlette.requests import Request

from agent.standin.observability.refusals import forbidden, not_found, unauthorized
from agent.standin.principal import CredentialKind, Principal, by_bearer, identify, nobody
from agent.standin.state import ORGANIZATIONS, USERS, Cloud


class Access(Enum):
    """The kinds of credential that an operation accepts."""

    USER = "user credentials or an organization auth token"
    BASIC = "email with password or user API key"
    PROJECT_KEY = "the project key"
    USER_OR_PROJECT_KEY = "user credentials, an organization auth token or the project key"
    OPEN = "nobody in particular: everyone, or who knows a secret URL"


class Role(Enum):
    """A user's role in an organization; an organization token has that of a project manager."""

    MEMBER = 1
    PROJECT_MANAGER = 2
    ADMIN = 3


ROLES = {"member": Role.MEMBER, "project_manager": Role.PROJECT_MANAGER, "admin": Role.ADMIN}
_USERS = frozenset({CredentialKind.BASIC, CredentialKind.ORGANIZATION_TOKEN})
_ACCEPTED = {
    Access.USER: _USERS,
    Access.BASIC: frozenset({CredentialKind.BASIC}),
    Access.PROJECT_KEY: frozenset({CredentialKind.PROJECT_KEY}),
    Access.USER_OR_PROJECT_KEY: _USERS | {CredentialKind.PROJECT_KEY},
}


def authenticate(request: Request, cloud: Cloud, access: Access) -> Principal:
    """Return the caller. Raises 401 without a valid credential, 403 for one of the wrong kind."""
    if access is Access.OPEN:
        return nobody("")
    principal = _identify(request, cloud)
    if principal.kind in _ACCEPTED[access]:
        return principal
    if principal.kind is CredentialKind.NONE and access is not Access.PROJECT_KEY:
        raise unauthorized(principal.reason)
    if access is Access.PROJECT_KEY:
        # The published answer to a missing or wrong project key.
        reason = (
            principal.reason or f"this endpoint takes the project key, not {principal.kind.value}"
        )
        raise forbidden(reason)
    raise forbidden(f"this endpoint takes {access.value}, not {principal.kind.value}")


def role_in(principal: Principal, cloud: Cloud, organization: str) -> Role:
    """Return the caller's role in an organization.

    Raises 404 for an unknown organization, 403 for one that the caller may not access.
    """
    record = cloud.table(ORGANIZATIONS).get(organization)
    if record is None:
        raise not_found(f"organization {organization[:128]!r}")
    if principal.kind is CredentialKind.ORGANIZATION_TOKEN:
        if principal.organization != organization:
            raise forbidden("this organization auth token belongs to another organization")
        return Role.PROJECT_MANAGER
    name = cloud.table(USERS)[principal.email].roles.get(organization)
    if name is None:
        raise forbidden("the user is not, or no longer, a member of this organization")
    if record.single_sign_on and not principal.with_password:
        raise forbidden("this organization requires single sign-on: a user API key is refused")
    return ROLES.get(name, Role.MEMBER)


def reachable(principal: Principal, cloud: Cloud) -> list[str]:
    """Return the slugs of the organizations that the caller may access."""
    if principal.kind is CredentialKind.ORGANIZATION_TOKEN:
        return [principal.organization]
    roles = cloud.table(USERS)[principal.email].roles
    return [
        slug
        for slug, record in cloud.table(ORGANIZATIONS).items()
        if slug in roles and (principal.with_password or not record.single_sign_on)
    ]


def _identify(request: Request, cloud: Cloud) -> Principal:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        # An older form of released tools: Basic, no user name, the token as the password.
        try:
            user, _, token = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:
            return nobody("the Basic credential is malformed")
        if not user:
            principal = by_bearer(token, cloud)
            return (
                principal
                if principal.kind is CredentialKind.ORGANIZATION_TOKEN
                else nobody("no user name was sent")
            )
    return identify(request, cloud)
