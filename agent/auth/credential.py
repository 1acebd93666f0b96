"""The interface of a credential, the choice for a call, HTTP Basic and the project key."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import ClassVar

from agent.call import Call, Host, Scheme
from agent.config.secrets import SECRETS, Secret
from agent.errors import ConfigError, CredentialMissing, WrongCredential
from agent.redact import hide

_UNAUTHORIZED, _FORBIDDEN = 401, 403
# The hosts that each kind may be sent to, whatever a call declares: a second check.
HOSTS: Mapping[Scheme, frozenset[Host]] = {
    Scheme.API_KEY: frozenset({Host.DEVICE_CLOUD, Host.PROVISIONING}),
    Scheme.DEVICE_JWT: frozenset({Host.DEVICE_CLOUD}),
    Scheme.SERVICE_JWT: frozenset({Host.DEVICE_CLOUD}),
    Scheme.EVALUATION_TOKEN: frozenset({Host.DEVICE_CLOUD}),
    Scheme.SERVICE_TOKEN: frozenset({Host.DEVICE_CLOUD}),
    Scheme.ORGANIZATION_TOKEN: frozenset({Host.DEVICE_CLOUD, Host.API, Host.FILES, Host.INGRESS}),
    Scheme.BASIC: frozenset({Host.API, Host.FILES, Host.INGRESS}),
    Scheme.PROJECT_KEY: frozenset({Host.API, Host.CHUNKS, Host.INGRESS, Host.FILES}),
    Scheme.MODEM_PROJECT_KEY: frozenset({Host.API}),
}


class Credential(ABC):
    """One secret and how it is sent. As it is here, it is neither made nor renewed by us."""

    scheme: ClassVar[Scheme]
    """The kind of this credential."""
    warning: str = ""
    """A warning to log before it is used, "" where there is none."""
    refused: Mapping[int, str] = {}
    """Status -> what to check after this refusal."""

    @abstractmethod
    async def headers(self, call: Call[object]) -> Mapping[str, str]:
        """Return the headers that carry it for `call`. Raises CredentialError, at.AtError."""

    def forget(self) -> bool:
        """Drop a cached token; return True if the next `headers` may differ (once, after a 401)."""
        return False

    def advice(self, status: int) -> str:
        """Return what to check after a refusal, "" where nothing is known."""
        return self.refused.get(status, "")


class Keyring:
    """The configured credentials, at most one of each kind.

    `prefer` takes precedence over the order in which a call names the kinds that it takes.
    `replacing` says of a kind where its secret came from, and how it is replaced.
    """

    def __init__(
        self,
        credentials: Iterable[Credential] = (),
        *,
        prefer: Scheme | None = None,
        replacing: Mapping[Scheme, str] | None = None,
    ) -> None:
        self._prefer = prefer
        self._replacing = replacing or {}
        self._by_scheme = {credential.scheme: credential for credential in credentials}

    def with_(self, *credentials: Credential) -> Keyring:
        """Return a copy in which `credentials` stand in place of others of their kind."""
        both = {**self._by_scheme, **Keyring(credentials)._by_scheme}
        return Keyring(both.values(), prefer=self._prefer, replacing=self._replacing)

    def advice(self, credential: Credential, status: int, own: str) -> str:
        """Return what to do after a refusal: replace the secret, or check what it needs.

        After a 403 the secret may be good: to replace it is the other way out. `own` is the call's
        own advice, "" where it has none.
        """
        own = own or credential.advice(status)
        replacing = (
            self._replacing.get(credential.scheme, "")
            if status in {_UNAUTHORIZED, _FORBIDDEN}
            else ""
        )
        if status == _FORBIDDEN:
            return "; or use another: ".join(filter(None, (own, replacing)))
        return "; ".join(filter(None, (replacing, own)))

    def forget(self) -> None:
        """Drop all cached tokens: the kit that made them is another one now."""
        for credential in self._by_scheme.values():
            credential.forget()

    def project_key(self, scheme: Scheme) -> str:
        """Return a project key as text, "" where there is none: for a kit that asks by itself."""
        credential = self._by_scheme.get(scheme)
        return credential.secret.reveal() if isinstance(credential, ProjectKey) else ""

    def __contains__(self, scheme: Scheme) -> bool:
        return scheme in self._by_scheme

    def choose(
        self, call: Call[object], wanted: Scheme | None = None, also: tuple[Scheme, ...] = ()
    ) -> Credential | None:
        """Return the credential to send `call` with, None if it takes none (D1.2, D1.5).

        `wanted` overrides the order in which the call prefers its kinds; `also` are kinds that it
        takes behind them. Raises CredentialMissing, WrongCredential; each names the kinds that
        would be right.
        """
        name = call.title
        schemes = (*call.schemes, *also)
        right = " or ".join(scheme.value for scheme in schemes)
        if wanted is not None and wanted not in schemes:
            raise WrongCredential(
                f"{name}: it takes no {wanted.value}, but {right or 'no credential'}"
            )
        candidates = (wanted,) if wanted is not None else schemes
        if wanted is None and self._prefer in schemes and self._prefer in self._by_scheme:
            candidates = (self._prefer, *schemes)
        for scheme in candidates:
            if scheme is Scheme.NONE:
                return None
            if scheme in self._by_scheme and call.host in HOSTS[scheme]:
                return self._by_scheme[scheme]
        if not schemes:
            return None
        there = ", ".join(sorted(scheme.value for scheme in self._by_scheme)) or "none"
        raise CredentialMissing(
            f"{name}: it needs {wanted.value if wanted else right}; configured: {there}",
            hint=_how_to_set(candidates[0], call.service),
        )


def secret_of(scheme: Scheme) -> str:
    """Return the name in SECRETS of the secret that a kind is, "" for one that is made of keys.

    BASIC may also be with "user_password".
    """
    return {
        Scheme.API_KEY: "api_key",
        Scheme.EVALUATION_TOKEN: "evaluation_token",
        Scheme.SERVICE_TOKEN: "service_token",
        Scheme.ORGANIZATION_TOKEN: "organization_token",
        Scheme.BASIC: "user_api_key",
        Scheme.PROJECT_KEY: "project_key",
        Scheme.MODEM_PROJECT_KEY: "modem_project_key",
    }.get(scheme, "")


def _how_to_set(scheme: Scheme, service: str) -> str:
    name = secret_of(scheme)
    if name:
        also = " and account.email" if scheme is Scheme.BASIC else ""
        return f"`cellagent config set {name}`, or set {SECRETS[name].variable}{also}"
    if scheme is Scheme.DEVICE_JWT:
        return "`--port PORT` names a kit, whose modem makes it; or set kit.device_key_file"
    return f"`cellagent config set credentials.service_key_files.{service or 'all'} FILE`"


class Basic(Credential):
    """A user's own access to the observability service (clauses O4.1, O4.5).

    `unattended` adds a warning about a user's key: no person is there to log in again.
    """

    scheme = Scheme.BASIC
    refused: Mapping[int, str] = dict.fromkeys(
        (_UNAUTHORIZED, _FORBIDDEN),
        "check email and key; a user key does not open an organization that requires single "
        "sign-on, and it stops when the user is removed from the organization: an "
        "organization auth token has neither limit",
    )

    def __init__(
        self, email: str, secret: Secret, *, is_password: bool, unattended: bool = False
    ) -> None:
        if not email or ":" in email or not email.isprintable():
            raise ConfigError(f"account.email: {email!r} cannot be used to log in")
        pair = f"{email}:{secret.reveal()}".encode()
        self._header = f"Basic {b64encode(pair).decode('ascii')}"
        hide(self._header.removeprefix("Basic "))
        self._is_password = is_password
        if is_password:
            self.warning = (
                "a password opens the whole account: use a user API key "
                "(CELLAGENT_USER_API_KEY), or an organization auth token for machines"
            )
        elif unattended:
            self.warning = (
                "a user API key stops working when its user leaves the organization: use an "
                "organization auth token (CELLAGENT_ORG_TOKEN) for machines"
            )

    def __repr__(self) -> str:
        return f"Basic({'password' if self._is_password else 'user API key'})"

    async def headers(self, call: Call[object]) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """Return the Authorization header."""
        return {"authorization": self._header}


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# The short paths, without organization and project: what a device with little memory uses.
_SHORT_PATHS = re.compile(
    r"/api/v0/(events|chunks/[^/?]+|upload(_multipart)?(/[a-z_-]+)?|device-config"
    r"|releases/latest(/url)?|queue/[^/?]+)"
)


class ProjectKey(Credential):
    """Pushes data, and opens the few endpoints that say so (clause O4.3).

    It is sent under a header whose name is configuration: real services name it after themselves.
    """

    scheme = Scheme.PROJECT_KEY

    def __init__(self, secret: Secret, *, header: str = "Service-Project-Key") -> None:
        if not _HEADER_NAME.fullmatch(header):
            raise ConfigError(f"account.project_key_header: {header!r} is no header name")
        self.secret = secret
        self._header = header.lower()
        compare = (
            "compare the key with that of `cellagent observe project-key`; one ends at once when "
            f"it is cycled; check the header's name in account.project_key_header, {header}, too"
        )
        plan = "; if both are right, a quota of the project's plan may be used up"
        self.refused = {_UNAUTHORIZED: compare, _FORBIDDEN: compare + plan}

    async def headers(self, call: Call[object]) -> Mapping[str, str]:
        """Return the header. Raises WrongCredential for a path that takes no project key."""
        path = call.request().path
        if not _SHORT_PATHS.fullmatch(path):
            raise WrongCredential(
                f"{call.title}: it takes no project key: {path} is none of the paths for it"
            )
        return {self._header: self.secret.reveal()}


class ModemProjectKey(ProjectKey):
    """Asks for releases of the modem's firmware, which lie in a project of their own."""

    scheme = Scheme.MODEM_PROJECT_KEY
