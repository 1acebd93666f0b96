"""Clients of the stand-in, and the credentials that it made for them."""

from collections.abc import AsyncIterator
from typing import Any

from agent.auth.bearer import ApiKey, OrganizationToken
from agent.auth.credential import Credential, Keyring, ProjectKey
from agent.call import Host
from agent.config.secrets import Secret
from agent.http import HttpClient, HttpTransport
from tests.support.cloud.kit_gates import open_gate
from tests.support.cloud.standin import StandIn


def client_with(
    standin: StandIn,
    *credentials: Credential,
    transport: HttpTransport | None = None,
    **settings: Any,
) -> HttpClient:
    """Return a client of all hosts of the stand-in with these credentials."""
    hosts = {host: standin.urls[host.value] for host in Host}
    return HttpClient(transport or HttpTransport(), hosts, Keyring(credentials), **settings)


def speaking_for_kit(standin: StandIn, *credentials: Credential) -> HttpClient:
    """Return such a client, which may call in a kit's name."""
    return client_with(standin, *credentials, kit_gate=open_gate)


def api_key(standin: StandIn) -> ApiKey:
    return ApiKey(Secret(standin.credentials["api_key"]))


def organization_token(standin: StandIn) -> OrganizationToken:
    return OrganizationToken(Secret(standin.credentials["organization_auth_token"]))


def project_key(standin: StandIn) -> ProjectKey:
    return ProjectKey(Secret(standin.credentials["project_key"]))


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]
