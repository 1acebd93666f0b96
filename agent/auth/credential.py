"""The interface of a credential, and the choice of the one that a call is sent with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from agent.call import Call, Host, Scheme
from agent.errors import CredentialMissing, WrongCredential

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
}


class Credential(Protocol):
    """One secret and how it is sent."""

    @property
    def scheme(self) -> Scheme:
        """The kind of this credential."""

    @property
    def warning(self) -> str:
        """A warning to log before it is used, "" where there is none."""

    async def headers(self, call: Call[Any]) -> Mapping[str, str]:
        """Return the headers that carry it for `call`. Raises CredentialError, at.AtError."""

    def forget(self) -> bool:
        """Drop a cached token; return True if the next `headers` may differ (once, after a 401)."""

    def advice(self, status: int) -> str:
        """Return what to check after a 401 or 403, "" where nothing is known."""


class Keyring:
    """The configured credentials, at most one of each kind.

    `prefer` takes precedence over the order in which a call names the kinds that it takes.
    """

    def __init__(
        self, credentials: Iterable[Credential] = (), *, prefer: Scheme | None = None
    ) -> None:
        self._prefer = prefer
        self._by_scheme = {credential.scheme: credential for credential in credentials}

    def with_(self, *credentials: Credential) -> Keyring:
        """Return a copy in which `credentials` stand in place of others of their kind."""
        both = {**self._by_scheme, **Keyring(credentials)._by_scheme}
        return Keyring(both.values(), prefer=self._prefer)

    def __contains__(self, scheme: Scheme) -> bool:
        return scheme in self._by_scheme

    def choose(self, call: Call[Any], wanted: Scheme | None = None) -> Credential | None:
        """Return the credential to send `call` with, None if it takes none (D1.2, D1.5).

        `wanted` overrides the order in which the call prefers its kinds. Raises
        CredentialMissing, WrongCredential; each names the kinds that would be right.
        """
        name = type(call).__name__
        right = " or ".join(scheme.value for scheme in call.schemes)
        if wanted is not None and wanted not in call.schemes:
            raise WrongCredential(
                f"{name} takes no {wanted.value}: it takes {right or 'no credential'}"
            )
        candidates = (wanted,) if wanted is not None else call.schemes
        if wanted is None and self._prefer in call.schemes and self._prefer in self._by_scheme:
            candidates = (self._prefer, *call.schemes)
        for scheme in candidates:
            if scheme is Scheme.NONE:
                return None
            if scheme in self._by_scheme and call.host in HOSTS[scheme]:
                return self._by_scheme[scheme]
        if not call.schemes:
            return None
        there = ", ".join(sorted(scheme.value for scheme in self._by_scheme)) or "none"
        raise CredentialMissing(
            f"{name} needs {wanted.value if wanted else right}; configured: {there}",
            hint=_how_to_set(candidates[0]),
        )


def _how_to_set(scheme: Scheme) -> str:
    variable = {
        Scheme.API_KEY: "CELLAGENT_API_KEY",
        Scheme.EVALUATION_TOKEN: "CELLAGENT_EVALUATION_TOKEN",
        Scheme.SERVICE_TOKEN: "CELLAGENT_SERVICE_TOKEN",
        Scheme.ORGANIZATION_TOKEN: "CELLAGENT_ORG_TOKEN",
        Scheme.BASIC: "CELLAGENT_USER_API_KEY and account.email",
        Scheme.PROJECT_KEY: "CELLAGENT_PROJECT_KEY",
    }.get(scheme)
    if variable:
        return f"set {variable}, or put it into the secrets file (`cellagent config path`)"
    if scheme is Scheme.DEVICE_JWT:
        return "name a kit (`--port`), whose modem makes the token, or credentials.device_key_file"
    return "name the key's file under credentials.service_key_files in the profile"
